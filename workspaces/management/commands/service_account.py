from __future__ import annotations

from typing import Any

from django.core.management.base import CommandError, CommandParser

from workspaces.management.hub_command import HubCommand
from workspaces.models import User, Workspace
from workspaces.service_accounts import accounts
from workspaces.service_accounts.errors import ServiceAccountError
from workspaces.states import Role

# The name under which the audit trail has what was done here.
WHO = "command line"


class Command(HubCommand):
    help = (
        "Service accounts, for CI and cron: `service_account list [--workspace SLUG]`, "
        "`service_account create SLUG NAME [--role ROLE]`, `service_account disable NAME`, "
        "`service_account enable NAME`, `service_account delete NAME`. Their tokens: `token create NAME`."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        verbs = parser.add_subparsers(dest="verb", required=True)
        listing = verbs.add_parser("list", help="print every service account: name, state, role, who made it")
        listing.add_argument("--workspace", metavar="SLUG", default="", help="only those of this workspace")
        create = verbs.add_parser("create", help="make a service account of a workspace")
        create.add_argument("workspace", metavar="SLUG")
        create.add_argument(
            "--role", choices=[role.value for role in accounts.ROLES], default=Role.CONTRIBUTOR
        )
        disable = verbs.add_parser("disable", help="refuse its tokens until it is enabled again")
        enable = verbs.add_parser("enable", help="let its tokens work again")
        delete = verbs.add_parser("delete", help="revoke its tokens and list it no more; its runs stay")
        for verb in (create, disable, enable, delete):
            verb.add_argument("name", metavar="NAME")

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            getattr(self, f"_{options['verb']}")(options)
        except ServiceAccountError as error:
            raise CommandError(f"{error.field}: {error.message}", returncode=2) from error

    def _list(self, options: dict[str, Any]) -> None:
        slug = options["workspace"]
        for workspace in [_workspace(slug)] if slug else Workspace.objects.order_by("slug"):
            for account in accounts.listed(workspace):
                state = "active" if account.is_active else "disabled"
                role = account.role  # type: ignore[attr-defined]
                self.stdout.write(
                    f"{account}\t{state}\t{role} of {workspace.slug}\tmade by {account.made_by}"
                )

    def _create(self, options: dict[str, Any]) -> None:
        workspace = _workspace(options["workspace"])
        account = accounts.create(WHO, workspace, options["name"], Role(options["role"]))
        self.stderr.write(f"Make a token for it: manage.py token create {account}")
        self.stdout.write(account.get_username())

    def _disable(self, options: dict[str, Any]) -> None:
        self._set_active(options["name"], is_active=False)

    def _enable(self, options: dict[str, Any]) -> None:
        self._set_active(options["name"], is_active=True)

    def _delete(self, options: dict[str, Any]) -> None:
        account = _account(options["name"])
        accounts.delete(WHO, account)
        self.stderr.write(f"{account} is deleted, and its tokens are revoked. Its runs stay.")

    def _set_active(self, name: str, *, is_active: bool) -> None:
        account = _account(name)
        accounts.set_active(WHO, account, is_active=is_active)
        self.stderr.write(f"{account} is {'enabled' if is_active else 'disabled'}.")


def _account(name: str) -> User:
    account = User.objects.filter(username=name, memberships__isnull=False).first()
    if account is None or not account.is_service_account:
        raise ServiceAccountError(
            "name", f"there is no service account {name}; see `manage.py service_account list`"
        )
    return account


def _workspace(slug: str) -> Workspace:
    workspace = Workspace.objects.filter(slug=slug).first()
    if workspace is None:
        raise ServiceAccountError(
            "workspace", f"there is no workspace {slug}; see `manage.py workspace list`"
        )
    return workspace
