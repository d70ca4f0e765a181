from __future__ import annotations

from pathlib import Path
from typing import Any

from django.core.management.base import CommandError, CommandParser

from registry.certificates import issuance, keys
from registry.errors import RegistryError
from registry.models import ModelVersion
from registry.verifying.trainhub_verify import (
    UNREADABLE,
    UnreadableInput,
    fingerprint_of,
    summary_lines,
    verify,
)
from workspaces import audit
from workspaces.management.hub_command import HubCommand


class Command(HubCommand):
    help = (
        "Models and their birth certificates. `model verify FOLDER|ZIP` exits 0 (verified), 1 (something "
        "differs), 2 (cannot be "
        "read), 3 (all agrees, but the key is not trusted)."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        verbs = parser.add_subparsers(dest="verb", required=True)
        verifying = verbs.add_parser("verify", help="check a downloaded model against its certificate")
        verifying.add_argument("path", metavar="FOLDER|ZIP", type=Path)
        verifying.add_argument(
            "--key",
            action="append",
            metavar="FINGERPRINT|FILE.pem",
            help="trust this key instead of this TrainHub's own",
        )
        verbs.add_parser("keys", help="list the keys that this TrainHub has signed with")
        verbs.add_parser("rotate-key", help="sign with a new key from now on; the old public key stays")
        verbs.add_parser(
            "certify", help="issue certificates for versions that were registered before there were any"
        )

    def handle(self, *args: object, **options: Any) -> None:
        verbs = {
            "verify": self._verify,
            "keys": self._keys,
            "rotate-key": self._rotate,
            "certify": self._certify,
        }
        try:
            verbs[options["verb"]](options)
        except RegistryError as error:
            raise CommandError(f"{error.message}.", returncode=UNREADABLE) from error

    def _verify(self, options: dict[str, Any]) -> None:
        try:
            path = options["key"]
            trusted = (
                [fingerprint_of(text) for text in path]
                if path
                else [key.fingerprint for key in keys.public_keys()]
            )
            report = verify(options["path"], trusted)
        except UnreadableInput as error:
            raise CommandError(f"Cannot be verified: {error}", returncode=UNREADABLE) from error
        self.stdout.write("\n".join(summary_lines(report)))
        if report.status:
            raise SystemExit(report.status)

    def _keys(self, _: dict[str, Any]) -> None:
        for key in keys.public_keys():
            state = "signs now" if key.is_current else f"since {key.since:%Y-%m-%d}, retired"
            self.stdout.write(f"{key.fingerprint} {state}\n{key.pem}")

    def _rotate(self, _: dict[str, Any]) -> None:
        before, after = keys.current().fingerprint, keys.rotate().fingerprint
        audit.record("command line", "model.key-rotated", after, before=before)
        self.stdout.write(f"{after} signs now; {before} stays known. Back up DATA_DIR/keys.")

    def _certify(self, _: dict[str, object]) -> None:
        waiting = ModelVersion.objects.select_related(
            "model__workspace", "run", "parent__model", "logged_model", "created_by"
        )
        count = 0
        # A version without files waits for those of its logged model, and gets its certificate with them.
        for version in waiting.filter(ModelVersion.has_files(), certificate="").iterator():
            issuance.issue_later(version)
            count += 1
        self.stdout.write(f"{count} certificate{'' if count == 1 else 's'} issued.")
