from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from workspaces import audit, tokens
from workspaces.access import membership_principal
from workspaces.models import User


class Command(BaseCommand):
    help = "API tokens: `token create USER [--name NAME]` prints a new one, this one time."

    def add_arguments(self, parser: CommandParser) -> None:
        verbs = parser.add_subparsers(dest="verb", required=True)
        create = verbs.add_parser("create", help="make a token for a person and print it")
        create.add_argument("user", metavar="USER")
        create.add_argument("--name", default="command line", help="how the settings page lists it")

    def handle(self, *args: Any, **options: Any) -> None:
        user = User.objects.filter(username=options["user"]).first()
        if user is None:
            raise CommandError(f"user: nobody is called {options['user']}; see the members under Settings", returncode=2)
        who = membership_principal(user)
        if who is None:
            raise CommandError(f"user: {user} is a member of no workspace; add them under Settings first", returncode=2)
        token, text = tokens.issue(user, who.workspace, options["name"])
        audit.record("command line", "token.created", token.name, who.workspace, user=user.get_username())
        self.stdout.write(text)
