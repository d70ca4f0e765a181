"""Decides which stored files a person may name: those that they have sent themselves, or that the workspace
has. A hash is no secret, so it alone must not give access to a file."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime

from jobs.models import UploadedBlob
from workspaces.access import Principal
from workspaces.stored_files import blob_names


def record_uploaded(who: Principal, sha256: str) -> None:
    """Records that the person has sent the whole file."""
    UploadedBlob.objects.update_or_create(workspace=who.workspace, user=who.user, digest=sha256)


def may_name(who: Principal, sha256: str) -> bool:
    """Returns whether the person may learn that the blob is stored, and name it instead of sending it."""
    return bool(allowed_hashes(who, [sha256]))


def allowed_hashes(who: Principal, hashes: Iterable[str]) -> set[str]:
    """Returns those of the hashes that the person may name. At most blob_names.AT_ONCE of them."""
    requested = set(hashes)
    uploaded = UploadedBlob.objects.filter(workspace=who.workspace, user=who.user, digest__in=requested)
    allowed = set(uploaded.values_list("digest", flat=True))
    return allowed | blob_names.named_in(who.workspace.pk, requested - allowed)


def forget_uploaded(before: float) -> None:
    """Deletes the records of files that were sent before that time (Unix seconds)."""
    UploadedBlob.objects.filter(uploaded_at__lt=datetime.fromtimestamp(before, UTC)).delete()
