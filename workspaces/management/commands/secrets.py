from __future__ import annotations

import sys
from typing import Any

from django.core.management.base import CommandError, CommandParser

from workspaces.access import membership_principal
from workspaces.management.hub_command import HubCommand
from workspaces.models import HubSecret, Secret, User, Workspace
from workspaces.secrets import hub_secrets, keyring, rotation, store
from workspaces.secrets.errors import SecretError, SecretsUnavailable

BROKEN = 1
# The name under which the audit trail has what was done here.
WHO = "command line"


class Command(HubCommand):
    help = (
        "The secrets of this installation: `secrets list`, `secrets set NAME --user USER` (the value comes "
        "on standard input), `secrets check`, `secrets rotate`, `secrets new-keyring`."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        verbs = parser.add_subparsers(dest="verb", required=True)
        verbs.add_parser("list", help="print every secret: workspace, name, whose, version, last change")
        to_set = verbs.add_parser("set", help="store the value that comes on standard input")
        to_set.add_argument("name", metavar="NAME")
        to_set.add_argument("--user", required=True, metavar="USER", help="who stores it")
        to_set.add_argument(
            "--workspace", default="", metavar="SLUG", help="by default the one that USER joined first"
        )
        to_set.add_argument(
            "--scope",
            choices=store.SCOPES,
            default=store.WORKSPACE,
            help="whose runs may use it: everybody's in the workspace, or only USER's",
        )
        verbs.add_parser("check", help="decrypt every secret; exit with 1 if one cannot be")
        verbs.add_parser("rotate", help="encrypt every secret with a new key, and remove the old ones")
        verbs.add_parser("new-keyring", help="make a new file of keys in place of a lost one")

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            getattr(self, f"_{options['verb'].replace('-', '_')}")(options)
        except SecretError as error:
            raise CommandError(f"{error.field}: {error.message}", returncode=2) from error
        except store.NotAllowed as error:
            raise CommandError(str(error), returncode=2) from error
        except SecretsUnavailable as error:
            raise CommandError(error.message) from error

    def _list(self, _: dict[str, Any]) -> None:
        for secret in _all():
            whose = secret.user.get_username() if secret.user else store.WORKSPACE
            changed = f"{secret.changed_at:%Y-%m-%d %H:%M} by {secret.changed_by}"
            self.stdout.write(
                f"{secret.workspace.slug}\t{secret.name}\t{whose}\tversion {secret.version}\t{changed}"
            )

    def _set(self, options: dict[str, Any]) -> None:
        user = User.objects.filter(username=options["user"]).first()
        if user is None:
            raise SecretError("user", f"there is no user {options['user']}; see `manage.py person list`")
        workspace = Workspace.objects.filter(slug=options["workspace"]).first()
        if workspace is None and options["workspace"]:
            raise SecretError(
                "workspace", f"there is no workspace {options['workspace']}; see `manage.py workspace list`"
            )
        who = membership_principal(user, workspace)
        if who is None:
            raise SecretError("user", f"{user} is not a member of {workspace or 'any workspace'}")
        # Not an argument: those can be read by everybody on this machine, and stay in the shell's history.
        value = sys.stdin.read().removesuffix("\n")
        secret = store.put(who, options["name"], value, options["scope"])
        self.stdout.write(f"{secret.name} is stored in {who.workspace.slug}, version {secret.version}.")

    def _check(self, _: dict[str, Any]) -> None:
        secrets = _all()
        count = len(secrets) + HubSecret.objects.count()
        broken = [
            (f"{secret.workspace.slug}/{secret.name}", why) for secret, why in store.unreadable(secrets)
        ]
        broken += hub_secrets.unreadable()
        for name, why in broken:
            self.stderr.write(f"{name}: {why}.")
        if broken:
            self.stderr.write(f"{len(broken)} of {count} secrets cannot be decrypted.")
            raise SystemExit(BROKEN)
        self.stdout.write(f"All {count} secrets can be decrypted.")

    def _rotate(self, _: dict[str, Any]) -> None:
        count = rotation.rotate(WHO)
        self.stdout.write(
            f"{count} secrets are encrypted with a new key. Replace your copies of {keyring.path()}."
        )

    def _new_keyring(self, _: dict[str, Any]) -> None:
        if keyring.exists():
            raise SecretsUnavailable(
                f"{keyring.path()} exists; if it is damaged or wrong, move it away and run this again"
            )
        keyring.create()
        names = [f"{secret.workspace.slug}/{secret.name}" for secret, _ in store.unreadable(_all())]
        again = f" Type these again: {', '.join(names)}." if names else ""
        own = [name for name, _ in hub_secrets.unreadable()]
        again += f" Let the hub make these again, on their pages: {', '.join(own)}." if own else ""
        self.stdout.write(f"{keyring.path()} is made. Keep a copy apart from the backups.{again}")


def _all() -> list[Secret]:
    return list(
        Secret.objects.select_related("workspace", "user").order_by("workspace__slug", "name", "user_id")
    )
