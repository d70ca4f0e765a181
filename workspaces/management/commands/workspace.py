from __future__ import annotations

from typing import Any

from django.core.management.base import CommandError, CommandParser

from workspaces.administration import workspace_changes
from workspaces.administration.errors import AdministrationError
from workspaces.mail import invitation_links
from workspaces.mail.errors import MailError
from workspaces.management.hub_command import HubCommand
from workspaces.models import User, Workspace
from workspaces.states import Role

# The name under which the audit trail has what was done here.
WHO = "command line"


class Command(HubCommand):
    help = (
        "Workspaces: `workspace list`, `workspace create NAME --owner USER [--slug SLUG]`, `workspace rename "
        "SLUG NAME`, `workspace archive SLUG`, `workspace restore SLUG`, `workspace invite SLUG [--role "
        "ROLE] [--mail ADDRESS]`."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        verbs = parser.add_subparsers(dest="verb", required=True)
        verbs.add_parser("list", help="print every workspace: short name, name, members")
        create = verbs.add_parser("create", help="make a workspace")
        create.add_argument("name", metavar="NAME")
        create.add_argument("--owner", metavar="USER", required=True, help="its first owner")
        create.add_argument("--slug", default="", help="its short name; by default made from NAME")
        rename = verbs.add_parser("rename", help="change the name that pages show")
        archive = verbs.add_parser("archive", help="let its members read it, and change nothing")
        restore = verbs.add_parser("restore", help="let its members work in it again")
        invite = verbs.add_parser("invite", help="invite somebody without an account, by a link or by mail")
        invite.add_argument("--role", choices=[role.value for role in Role], default=Role.CONTRIBUTOR)
        invite.add_argument("--mail", metavar="ADDRESS", default="", help="send the link there")
        for verb in (rename, archive, restore, invite):
            verb.add_argument("slug", metavar="SLUG")
        rename.add_argument("name", metavar="NAME")

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            getattr(self, f"_{options['verb']}")(options)
        except (AdministrationError, MailError) as error:
            raise CommandError(f"{error.field}: {error.message}", returncode=2) from error

    def _list(self, _: dict[str, Any]) -> None:
        for workspace in Workspace.objects.order_by("slug"):
            archived = "\tarchived" if workspace.archived_at else ""
            self.stdout.write(
                f"{workspace.slug}\t{workspace}\t{workspace.memberships.count()} members{archived}"
            )

    def _create(self, options: dict[str, Any]) -> None:
        owner = User.objects.filter(username=options["owner"]).first()
        if owner is None:
            raise AdministrationError(
                "owner", f"there is no user {options['owner']}; see `manage.py person list`"
            )
        self.stdout.write(workspace_changes.create(WHO, options["name"], options["slug"], owner=owner).slug)

    def _rename(self, options: dict[str, Any]) -> None:
        workspace_changes.rename(WHO, _workspace(options["slug"]), options["name"])

    def _archive(self, options: dict[str, Any]) -> None:
        workspace_changes.archive(WHO, _workspace(options["slug"]))

    def _restore(self, options: dict[str, Any]) -> None:
        workspace_changes.restore(WHO, _workspace(options["slug"]))

    def _invite(self, options: dict[str, Any]) -> None:
        workspace, role = _workspace(options["slug"]), Role(options["role"])
        if options["mail"]:
            invitation = invitation_links.invite_address(WHO, workspace, role, options["mail"])
            self.stderr.write(f"An invitation is on its way to {invitation.address}.")
            return
        invitation, address = invitation_links.create_link(WHO, workspace, role)
        self.stderr.write(f"It works once, until {invitation.expires_at:%Y-%m-%d %H:%M} UTC:")
        self.stdout.write(address)


def _workspace(slug: str) -> Workspace:
    workspace = Workspace.objects.filter(slug=slug).first()
    if workspace is None:
        raise AdministrationError("slug", f"there is no workspace {slug}; see `manage.py workspace list`")
    return workspace
