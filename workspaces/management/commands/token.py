from __future__ import annotations

from datetime import timedelta
from typing import Any

from django.core.management.base import CommandError, CommandParser

from workspaces import audit, tokens
from workspaces.access import membership_principal
from workspaces.management.hub_command import HubCommand
from workspaces.models import User, Workspace
from workspaces.states import TokenScope

LONGEST_DAYS = 3650


class Command(HubCommand):
    help = (
        "API tokens: `token create USER [--name NAME] [--workspace SLUG] [--scope SCOPE] [--days DAYS]` "
        "prints a new one, this one time."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        verbs = parser.add_subparsers(dest="verb", required=True)
        create = verbs.add_parser("create", help="make a token of a person or service account and print it")
        create.add_argument("user", metavar="USER")
        create.add_argument(
            "--name", default="command line", help="its name in the list on the settings page"
        )
        create.add_argument(
            "--workspace",
            metavar="SLUG",
            default="",
            help="the workspace in which it acts; by default the one that the person joined first",
        )
        create.add_argument(
            "--all-workspaces",
            action="store_true",
            help="acts in any workspace of the person; each request names one in a header",
        )
        create.add_argument(
            "--scope",
            choices=list(TokenScope),
            default=TokenScope.WRITE,
            help=(
                "read: changes nothing; log: only logs runs of its own with MLflow; register: also registers "
                "their models; submit: also submits runs; write: whatever the person may do"
            ),
        )
        create.add_argument(
            "--days",
            type=int,
            default=tokens.DEFAULT_LIFETIME_DAYS,
            help="days until it expires; 0: never",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        user = User.objects.filter(username=options["user"]).first()
        if user is None:
            raise CommandError(
                f"user: there is no user {options['user']}; see the members under Settings", returncode=2
            )
        if not user.is_active:
            way = "service_account enable" if user.is_service_account else "person activate"
            raise CommandError(f"user: {user} is disabled; see `manage.py {way} {user}`", returncode=2)
        slug = options["workspace"]
        workspace = Workspace.objects.filter(slug=slug).first() if slug else None
        if slug and (workspace is None or membership_principal(user, workspace) is None):
            raise CommandError(
                f"workspace: {user} is not a member of {slug}; see `manage.py person list`", returncode=2
            )
        who = membership_principal(user, workspace)
        if who is None:
            raise CommandError(
                f"user: {user} is not a member of any workspace; add them under Settings first", returncode=2
            )
        days = options["days"]
        if not 0 <= days <= LONGEST_DAYS:
            raise CommandError(
                f"days: must be from 1 to {LONGEST_DAYS}, or 0 for a token that does not expire", returncode=2
            )
        lifetime = timedelta(days=days) if days else None
        if options["all_workspaces"] and user.is_service_account:
            raise CommandError(
                f"all-workspaces: {user} is a service account, which acts in {who.workspace.slug} only; "
                "leave --all-workspaces out",
                returncode=2,
            )
        workspace = None if options["all_workspaces"] else who.workspace
        token, text = tokens.issue(
            user, workspace, options["name"], scope=TokenScope(options["scope"]), lifetime=lifetime
        )
        audit.record("command line", "token.created", token.name, who.workspace, user=user.get_username())
        if token.expires_at is not None:
            self.stderr.write(f"It expires on {token.expires_at:%Y-%m-%d}; --days changes that.")
        self.stdout.write(text)
