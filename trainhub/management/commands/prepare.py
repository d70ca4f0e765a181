"""What `up` needs of Django before the services start: schema, first owner, this machine's enrolment."""

from __future__ import annotations

import json
import re
import socket
from typing import Any

from django.core.management import call_command
from django.core.management.base import BaseCommand

from clusters.enrolment import enrol, node_of_token
from trainhub import places
from trainhub.files import write_secret
from workspaces.bootstrap import ensure_owner


class Command(BaseCommand):
    help = "Migrate, make the first owner and enrol this machine. Prints one line of JSON; `manage.py up` runs it."

    def handle(self, *args: Any, **options: Any) -> None:
        call_command("migrate", interactive=False, verbosity=0)
        password = ensure_owner()
        node = _enrol_this_machine()
        self.stdout.write(json.dumps({"password": password, "node": node}))


def _enrol_this_machine() -> str:
    if places.NODE_TOKEN_FILE.exists():
        known = node_of_token(places.NODE_TOKEN_FILE.read_text().strip())
        if known is not None:
            return known.name
    name = re.sub(r"[^a-z0-9-]+", "-", socket.gethostname().split(".")[0].lower()).strip("-") or "local"
    node, token = enrol("local", name)
    write_secret(places.NODE_TOKEN_FILE, token)
    return node.name
