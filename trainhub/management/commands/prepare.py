"""What `up` needs before the services start: certificate, schema, first owner, this machine's enrolment."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import CommandError, CommandParser
from django.db import connection

from clusters.enrolment.node_tokens import enrol_node, name_from_host, node_for_token
from environments.repositories.temporary_folder import remove_forgotten_folders
from trainhub import installation
from trainhub.backup.data_folder import hub_content
from trainhub.database_move.move_record import is_move_unfinished
from trainhub.files import write_secret
from trainhub.up import preflight
from trainhub.upgrade.migration_plan import MigrationFailed, migrate_database
from trainhub.upgrade.release_record import DatabaseTooNew, check_release
from workspaces import set_aside, tokens
from workspaces.access import membership_principal
from workspaces.bootstrap import OWNER, ensure_owner
from workspaces.database.outages import connection_failure
from workspaces.management.hub_command import HubCommand
from workspaces.models import ApiToken, User
from workspaces.object_store.errors import StoreUnavailable
from workspaces.object_store.start_test import object_row_warnings, require_store
from workspaces.servers import data_folder, differences, membership, server_registry

VISITOR = "demo visitor"
# Of the lock in PostgreSQL.
PREPARATION = 7_264_110_591


class Command(HubCommand):
    help = (
        "Certificate, migrations, first owner and this machine's enrolment. Prints one line of JSON; "
        "`manage.py up` runs it."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument(
            "--further", action="store_true", help="for one of several servers, without agent"
        )
        parser.add_argument(
            "--demo",
            type=Path,
            metavar="FACTS.json",
            help="enrol these simulated machines instead of this one",
        )

    def handle(self, *args: object, **options: Any) -> None:
        certificate = installation.broker_certificate()
        if certificate is not None and certificate.ca is not None:
            _make_certificate()
        if failure := connection_failure():
            raise CommandError(f"the database of DATABASE_URL cannot be reached: {failure.rstrip('.')}")
        if is_move_unfinished():
            raise CommandError(
                "A move into this database was not completed; run `manage.py migrate-to-postgresql` again"
            )
        is_further = options["further"] or bool(settings.SERVER_ADDRESS)
        with one_at_a_time():
            _check_database(is_further=is_further)
            newer = _migrate()
            _compare_with_others(is_further=is_further)
            data_folder.pair_with_database()
            password = ensure_owner()
        remove_forgotten_folders()
        prepared = _enrolled_machines(demo=options["demo"], is_further=options["further"])
        try:
            notices = [
                *([newer] if newer else []),
                *set_aside.sentences(),
                *require_store(),
                *object_row_warnings(),
            ]
        except StoreUnavailable as error:
            raise CommandError(str(error)) from error
        self.stdout.write(json.dumps({"password": password, "notices": notices, **prepared}))


def _migrate() -> str:
    """Returns a notice where the database is of a newer version, with which this one works."""
    try:
        newer = check_release()
        migrate_database()
    except (DatabaseTooNew, MigrationFailed) as error:
        raise CommandError(str(error)) from error
    return newer


def _check_database(*, is_further: bool) -> None:
    try:
        data_folder.check_pairing(is_further=is_further, has_content=any(hub_content()))
    except data_folder.WrongDatabase as error:
        raise CommandError(str(error)) from error
    if not is_further or not server_registry.is_shareable():
        return
    offset_s = server_registry.clock_offset_s()
    if not membership.is_punctual(offset_s):
        raise CommandError(
            f"The clock of this machine is {membership.clock_phrase(offset_s)}. Have it set by NTP, and "
            "start this server again."
        )


def _compare_with_others(*, is_further: bool) -> None:
    """After the migration: rows of servers have their settings only then."""
    if is_further and server_registry.is_shareable() and (refusal := differences.start_refusal()):
        raise CommandError(refusal)


@contextmanager
def one_at_a_time() -> Iterator[None]:
    """Lets other servers that start at the same time wait: each of them may make the tables."""
    if not server_registry.is_shareable():
        yield
        return
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_lock(%s)", [PREPARATION])
        try:
            yield
        finally:
            cursor.execute("SELECT pg_advisory_unlock(%s)", [PREPARATION])


def _enrolled_machines(*, demo: Path | None, is_further: bool) -> dict[str, str]:
    if demo is not None:
        return _demo(json.loads(demo.read_text()))
    has_node = preflight.has_local_node() and not is_further
    return {"node": _enrol_this_machine() if has_node else ""}


def _make_certificate() -> None:
    # Imported by name, here and below, because only some starts need it.
    certificates = import_module("trainhub.certificates")
    try:
        certificates.ensure(installation.TLS_DIR, installation.certificate_hosts())
    except certificates.AuthorityDamaged as error:
        raise CommandError(str(error)) from error


def _enrol_this_machine() -> str:
    return _enrolled("local", name_from_host(socket.gethostname()) or "local", installation.NODE_TOKEN_FILE)


def _enrolled(cluster: str, name: str, token_file: Path) -> str:
    """Keep a token that is still good: an agent may be using it."""
    if token_file.exists():
        enrolled = node_for_token(token_file.read_text().strip())
        if enrolled is not None:
            return enrolled.name
    node, token = enrol_node(cluster, name)
    write_secret(token_file, token)
    return node.name


def _demo(fleet: dict[str, Any]) -> dict[str, str]:
    """`nodes`: cluster, name, token file and GPUs of each; `training`: the folder that its visitor's runs
    start from."""
    for node in fleet["nodes"]:
        _enrolled(node["cluster"], node["name"], Path(node["token_file"]))
    who = membership_principal(User.objects.get(username=OWNER))
    if who is None:
        raise CommandError(
            f"{OWNER} is a member of no workspace; remove the demo's data folder to start over"
        )
    # The text of an existing token is stored nowhere, so each start of the demo issues a new one.
    ApiToken.objects.filter(user=who.user, name=VISITOR).delete()
    _, token = tokens.issue(who.user, who.workspace, VISITOR)
    snapshot = import_module("jobs.sources.snapshots").from_folder(Path(fleet["training"]), who).sha256
    past = import_module("trainhub.demo.past")
    past.write(past.Fleet.from_json(fleet, snapshot), who)
    return {"node": "", "token": token, "snapshot": snapshot}
