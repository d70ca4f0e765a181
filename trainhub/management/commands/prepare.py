"""What `up` needs before the services start: certificate, schema, first owner, this machine's enrolment."""

from __future__ import annotations

import json
import socket
from typing import Any

from django.core.management import call_command
from django.core.management.base import BaseCommand, CommandError

from clusters.enrolment import enrol, name_of_host, node_of_token
from trainhub import certificates, places
from trainhub.files import write_secret
from workspaces.bootstrap import ensure_owner


class Command(BaseCommand):
    help = "Certificate, migrations, first owner and this machine's enrolment. Prints one line of JSON; `manage.py up` runs it."

    def handle(self, *args: Any, **options: Any) -> None:
        shown = places.certificate()
        if shown is not None and shown.ca is not None:
            _make_certificate()
        call_command("migrate", interactive=False, verbosity=0)
        password = ensure_owner()
        node = _enrol_this_machine()
        self.stdout.write(json.dumps({"password": password, "node": node}))


def _make_certificate() -> None:
    try:
        certificates.ensure(places.TLS_DIR, places.certificate_hosts())
    except certificates.AuthorityDamaged as error:
        raise CommandError(str(error)) from error


def _enrol_this_machine() -> str:
    if places.NODE_TOKEN_FILE.exists():
        known = node_of_token(places.NODE_TOKEN_FILE.read_text().strip())
        if known is not None:
            return known.name
    node, token = enrol("local", name_of_host(socket.gethostname()) or "local")
    write_secret(places.NODE_TOKEN_FILE, token)
    return node.name
