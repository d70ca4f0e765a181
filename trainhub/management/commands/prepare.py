"""What `up` needs before the services start: certificate, schema, first owner, this machine's enrolment."""

from __future__ import annotations

import json
import socket
from importlib import import_module
from pathlib import Path
from typing import Any

from django.core.management.base import CommandError, CommandParser

from clusters.enrolment.node_tokens import enrol_node, name_from_host, node_for_token
from environments.repositories.temporary_folder import remove_forgotten_folders
from trainhub import installation
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

VISITOR = "demo visitor"


class Command(HubCommand):
    help = (
        "Certificate, migrations, first owner and this machine's enrolment. Prints one line of JSON; "
        "`manage.py up` runs it."
    )

    def add_arguments(self, parser: CommandParser) -> None:
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
        try:
            newer = check_release()
            migrate_database()
        except (DatabaseTooNew, MigrationFailed) as error:
            raise CommandError(str(error)) from error
        remove_forgotten_folders()
        password = ensure_owner()
        prepared = (
            {"node": _enrol_this_machine() if preflight.has_local_node() else ""}
            if options["demo"] is None
            else _demo(json.loads(options["demo"].read_text()))
        )
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
