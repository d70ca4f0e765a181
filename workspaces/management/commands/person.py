from __future__ import annotations

from typing import Any

from django.core.management.base import CommandError, CommandParser
from django.db import transaction

from workspaces.administration import accounts, active_work, password_links
from workspaces.administration.errors import AdministrationError, require_person
from workspaces.authentication.factors.removal import reset_factors
from workspaces.management.hub_command import HubCommand
from workspaces.models import User

# The name under which the audit trail has what was done here.
WHO = "command line"


class Command(HubCommand):
    help = (
        "The accounts of this installation: `person list`, `person link NAME` (prints a link for a new "
        "password, also for the first owner), `person operator NAME [--off]`, `person deactivate NAME "
        "[--cancel-runs]`, `person activate NAME`, `person reset-factors NAME`."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        verbs = parser.add_subparsers(dest="verb", required=True)
        verbs.add_parser("list", help="print every account: name, state, workspaces with roles")
        link = verbs.add_parser("link", help="print a link by which the person chooses a new password")
        operator = verbs.add_parser("operator", help="make the person an operator of the installation")
        operator.add_argument("--off", action="store_true", help="take the rights away instead")
        deactivate = verbs.add_parser(
            "deactivate", help="sign the person out everywhere, and let them in no more"
        )
        deactivate.add_argument(
            "--cancel-runs", action="store_true", help="also cancel their runs; without it they finish"
        )
        activate = verbs.add_parser("activate", help="let a deactivated person sign in again")
        reset = verbs.add_parser("reset-factors", help="let the person sign in without their second factors")
        for verb in (link, operator, deactivate, activate, reset):
            verb.add_argument("name", metavar="NAME")

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            getattr(self, f"_{options['verb'].replace('-', '_')}")(options)
        except AdministrationError as error:
            raise CommandError(f"{error.field}: {error.message}", returncode=2) from error

    def _list(self, _: dict[str, Any]) -> None:
        people = User.objects.filter(service_workspace=None)
        for user in people.order_by("username").prefetch_related("memberships__workspace"):
            state = "active" if user.is_active else "deactivated"
            rights = ", operator" if user.is_operator else ""
            roles = ", ".join(f"{item.role} of {item.workspace.slug}" for item in user.memberships.all())
            self.stdout.write(f"{user}\t{state}{rights}\t{roles or 'no workspace'}")

    def _link(self, options: dict[str, Any]) -> None:
        link, address = password_links.create_link(WHO, _user(options["name"]))
        self.stderr.write(f"It works once, until {link.expires_at:%Y-%m-%d %H:%M} UTC:")
        self.stdout.write(address)

    def _operator(self, options: dict[str, Any]) -> None:
        user, is_operator = _user(options["name"]), not options["off"]
        accounts.set_operator(WHO, user, is_operator=is_operator)
        self.stderr.write(f"{user} is {'an' if is_operator else 'no longer an'} operator.")

    def _deactivate(self, options: dict[str, Any]) -> None:
        user = _user(options["name"])
        with transaction.atomic():
            accounts.deactivate(WHO, user)
            canceled = active_work.cancel_runs_of(user, user) if options["cancel_runs"] else 0
        self.stderr.write(f"{user} is deactivated.")
        if canceled:
            self.stderr.write(f"{canceled} of their runs {'is' if canceled == 1 else 'are'} being canceled.")

    def _activate(self, options: dict[str, Any]) -> None:
        user = _user(options["name"])
        accounts.activate(WHO, user)
        self.stderr.write(f"{user} can sign in again.")

    def _reset_factors(self, options: dict[str, Any]) -> None:
        user = _user(options["name"])
        had_any = reset_factors(WHO, user)
        self.stderr.write(f"{user} {'signs in without' if had_any else 'has no'} second factor.")


def _user(name: str) -> User:
    user = User.objects.filter(username=name).first()
    if user is None:
        raise CommandError(f"name: there is no user {name}; see `manage.py person list`", returncode=2)
    require_person(user)
    return user
