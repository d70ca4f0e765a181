"""What a script downloads while it is measured: files of the same format with next to nothing in them, so
that no verdict depends on the internet."""

from __future__ import annotations

import gzip
import io
import struct
import tarfile
import urllib.request
import zipfile
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

# Of the images of digits that most examples download; some count them.
TRAINING_IMAGES, TEST_IMAGES, SIDE = 60_000, 10_000, 28


def replace_downloads() -> None:
    """Replaces the two functions by which scripts download, in this process."""
    setattr(urllib.request, "urlretrieve", urlretrieve)  # noqa: B010 - mypy knows its parameters
    if find_spec("requests") is not None:
        requests = import_module("requests")
        setattr(requests, "get", lambda url, *_, **__: answer_of(requests, str(url)))  # noqa: B010


def urlretrieve(url: str, filename: Any = None, *_others: object) -> tuple[str, None]:
    """Writes the file, by default one of the name in the address. Returns its path."""
    path = Path(filename or url.rpartition("/")[2])
    path.write_bytes(content_of(url))
    return str(path), None


def content_of(url: str) -> bytes:
    """Returns a file of the format that the address names; archives are empty but for the folder of their
    name."""
    stream, name = io.BytesIO(), url.rpartition("/")[2]
    folder = name.partition(".")[0]
    if name.endswith((".tar.gz", ".tgz")):
        with tarfile.open(fileobj=stream, mode="w:gz") as archive:
            member = tarfile.TarInfo(folder)
            member.type, member.mode = tarfile.DIRTYPE, 0o755
            archive.addfile(member)
    elif name.endswith(".zip"):
        with zipfile.ZipFile(stream, "w") as zipped:
            zipped.writestr(f"{folder}/", "")
    elif name.endswith("ubyte.gz"):
        count = TEST_IMAGES if "t10k" in name else TRAINING_IMAGES
        return gzip.compress(digits(count, is_images="images" in name), compresslevel=1)
    return stream.getvalue()


def digits(count: int, *, is_images: bool) -> bytes:
    """Returns black images, or their labels, in the format of the MNIST database."""
    if is_images:
        return struct.pack(">4I", 0x803, count, SIDE, SIDE) + bytes(count * SIDE * SIDE)
    return struct.pack(">2I", 0x801, count) + bytes(number % 10 for number in range(count))


def answer_of(requests: Any, url: str) -> Any:
    answer = requests.Response()
    answer.status_code, answer._content, answer._content_consumed = 200, content_of(url), True
    return answer
