from __future__ import annotations

from typing import Any

from django.core.management.base import CommandError, CommandParser
from django.db.models import Count, Sum

from workspaces.management.hub_command import HubCommand
from workspaces.object_store.client import store_configuration
from workspaces.object_store.errors import StoreUnavailable
from workspaces.object_store.models import LIVE, ObjectState, StoredObject
from workspaces.stored_files import blob_cache, blob_moves

DAMAGED = 1
LABELS = {
    ObjectState.STORED: "in the store",
    ObjectState.WAITING: "waiting for their upload",
    ObjectState.DELETED: "deleted, and still in the store for a time",
}


class Command(HubCommand):
    help = (
        "The stored files in the object store of BLOB_STORE. `blobs status` counts them; `blobs to-store` "
        "uploads those of this disk; `blobs to-disk` fetches all; `blobs verify` compares each object. All "
        "of them may run while the hub works, and go on where they were interrupted."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        verbs = parser.add_subparsers(dest="verb", required=True)
        verbs.add_parser("status", help="count files here and there")
        verbs.add_parser("to-store", help="upload the files of this disk that the store does not have")
        verbs.add_parser("to-disk", help="fetch all files of the store to this disk")
        verify = verbs.add_parser("verify", help="see whether each object is there with its size")
        verify.add_argument("--read", action="store_true", help="read each whole and compare its SHA-256")
        verbs.add_parser("forget-other-stores", help="forget files recorded in other places than BLOB_STORE")

    def handle(self, *args: object, **options: Any) -> None:
        verb = options["verb"]
        if store_configuration() is None and verb not in ("status", "forget-other-stores"):
            raise CommandError("BLOB_STORE is not set, so there is no store. Set it as for the hub.")
        try:
            {
                "status": self._status,
                "to-store": self._to_store,
                "to-disk": self._to_disk,
                "verify": lambda: self._verify(is_read=options["read"]),
                "forget-other-stores": self._forget,
            }[verb]()
        except (StoreUnavailable, blob_moves.MoveRefused) as error:
            raise CommandError(str(error)) from error

    def _status(self) -> None:
        configuration = store_configuration()
        self.stdout.write(f"BLOB_STORE: {configuration.place if configuration else 'the local disk'}")
        counts = StoredObject.objects.values("place", "state").annotate(
            n=Count("pk"), total=Sum("size_bytes")
        )
        for row in counts.order_by("place", "state"):
            label = LABELS[ObjectState(row["state"])]
            self.stdout.write(f"{row['place']}: {row['n']:,} files {label}, {_mib(row['total'])}")
        sizes = [entry.stat().st_size for entry in blob_cache.local_blobs()]
        self.stdout.write(f"On this disk: {len(sizes):,} files, {_mib(sum(sizes))}")

    def _to_store(self) -> None:
        count = blob_moves.move_to_store(self.stdout.write)
        self.stdout.write(
            f"{count:,} files of this disk were not in the store; all are now. They stay here as copies "
            "until BLOB_CACHE_BYTES needs the room."
        )

    def _to_disk(self) -> None:
        count = blob_moves.move_to_disk(self.stdout.write)
        self.stdout.write(
            f"{count:,} files were fetched; all are on this disk now. To leave the store: unset BLOB_STORE, "
            "restart the hub, and run `manage.py blobs forget-other-stores`. The objects stay in the bucket."
        )

    def _verify(self, *, is_read: bool) -> None:
        count = problems = 0
        for verdict in blob_moves.verify_objects(is_read=is_read):
            count += 1
            if verdict.problem:
                problems += 1
                self.stderr.write(verdict.problem)
        what = "its content" if is_read else "its size"
        self.stdout.write(f"{count - problems:,} of {count:,} objects are there, each with {what}.")
        if problems:
            raise SystemExit(DAMAGED)

    def _forget(self) -> None:
        configuration = store_configuration()
        rows = StoredObject.objects.all()
        if configuration is not None:
            rows = rows.exclude(place=configuration.place)
        here = {entry.name for entry in blob_cache.local_blobs()}
        away = [row for row in rows.filter(state__in=LIVE).iterator() if row.sha256 not in here]
        if away:
            raise CommandError(
                f"{len(away):,} files are only in {away[0].place}, for example {away[0].sha256}. Set "
                f"BLOB_STORE={away[0].place} and run `manage.py blobs to-disk` first."
            )
        self.stdout.write(f"{rows.delete()[0]:,} rows of other stores are deleted; their objects stay.")


def _mib(size: int) -> str:
    return f"{size / 2**20:,.1f} MiB"
