"""Which files an upload may have: their paths, sizes and times."""

from __future__ import annotations

import math
from typing import NamedTuple

from django.conf import settings

from trainhub_launch.data.file_names import MAX_NAME_BYTES, is_file_name
from trainhub_launch.scheduler.sizes import bytes_text

MAX_PATH_BYTES = 1024
MAX_FILES = 100_000
MAX_BYTES = 100 * 1024**3
ELSEWHERE = (
    "keep larger data in a bucket, in a container or in a folder of the nodes, and add that as a datastore"
)
# Until the year 2242, so that a wrong unit is noticed.
MAX_TIME = float(2**33)


class SentFile(NamedTuple):
    """A file as its uploader describes it. `modified_at` in seconds since 1970, None if the uploader does not
    say; `sha256`: "" if the uploader does not know it."""

    path: str
    size: int
    modified_at: float | None = None
    sha256: str = ""


def file_refusal(file: SentFile) -> str:
    """Returns why an upload cannot have the file, as the rest of a sentence with the remedy; "" if it can."""
    if wrong := name_refusal(file.path):
        return wrong
    if file.size > settings.MAX_UPLOAD_BYTES:
        return f"it has more than {bytes_text(settings.MAX_UPLOAD_BYTES)} (MAX_UPLOAD_BYTES): {ELSEWHERE}"
    if file.modified_at is not None and not (
        math.isfinite(file.modified_at) and 0 <= file.modified_at <= MAX_TIME
    ):
        return f"its time must be seconds since 1970, from 0 to {MAX_TIME:.0f}"
    return ""


def name_refusal(path: str) -> str:
    """Returns why no version can have a file with this path, like `file_refusal`."""
    if any(0xD800 <= ord(sign) < 0xE000 for sign in path):
        return "its name is not UTF-8: rename it"
    if any(ord(sign) < 32 or ord(sign) == 127 for sign in path):
        return "its name has control characters, such as a line break: rename it"
    if len(path.encode()) > MAX_PATH_BYTES:
        return f"its path has more than {MAX_PATH_BYTES:,} bytes: shorten it"
    if not is_file_name(path):
        return (
            f"its path has a part that is empty, '.', '..' or longer than {MAX_NAME_BYTES} bytes: rename it, "
            "and begin without '/'"
        )
    return ""


def room_refusal(files: int, size: int) -> str:
    """Returns why a version cannot have so many files with so many bytes together, "" if it can."""
    if files > MAX_FILES:
        return (
            f"a version on the hub has at most {MAX_FILES:,} files: pack small ones into archives, "
            f"or {ELSEWHERE}"
        )
    if size > MAX_BYTES:
        return f"a version on the hub has at most {bytes_text(MAX_BYTES)}: {ELSEWHERE}"
    return ""
