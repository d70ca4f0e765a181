"""Where a client says that a file is: checked before anything is looked up.

`<experiment>/<run>/artifacts/<path>` and `<experiment>/models/<model>/artifacts/<path>`, as the artifact addresses that the
hub gives to clients.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from urllib.parse import unquote

from starlette.convertors import PathConvertor, register_url_convertor

from tracking.mlflow.errors import INVALID, MlflowError

LONGEST = 900
LONGEST_PART_BYTES = 255
"""A file system that a folder is downloaded to takes no longer name."""
EXPERIMENT = re.compile(r"\d{1,18}\Z")
RUN = re.compile(r"[0-9a-f]{32}\Z")
MODEL = re.compile(r"m-[0-9a-f]{32}\Z")
_DRIVE = re.compile(r"[A-Za-z]:")
_MOST_DECODED = 5


class _Told(PathConvertor):
    """The rest of an address, line breaks too: what is wrong with it is said here and not by a missing page."""

    regex = "(?s:.*)"


register_url_convertor("told", _Told())


@dataclass(frozen=True)
class Address:
    """`owner`: a run's id, or a logged model's (`m-…`). `path`: below it, "" for its root."""

    experiment: int
    owner: str
    path: str

    @property
    def is_model(self) -> bool:
        return self.owner.startswith("m-")


def address(text: str, *, is_folder: bool = False) -> Address:
    """Of a file; with `is_folder` of a folder, the root included. Raises MlflowError."""
    told = text.rstrip("/") if is_folder else text
    parts = told.split("/")
    owner_at = 2 if parts[1:2] == ["models"] else 1
    known = MODEL if owner_at == 2 else RUN
    head, rest = parts[: owner_at + 2], parts[owner_at + 2 :]
    is_known = len(head) == owner_at + 2 and head[-1] == "artifacts" and known.match(head[owner_at])
    if not is_known or not EXPERIMENT.match(head[0]):
        where = "'<experiment id>/<run id>/artifacts/…' or '<experiment id>/models/<model id>/artifacts/…'"
        raise MlflowError(INVALID, f"path: {_shown(text)} names nothing here. Give {where}, as the run's artifact_uri says.")
    if not rest and not is_folder:
        raise MlflowError(INVALID, "path: name a file below 'artifacts/'.")
    return Address(int(head[0]), head[owner_at], checked("/".join(rest)) if rest else "")


def checked(path: str) -> str:
    """A path below a root, as it is; raises MlflowError for one that could lead out of it, or that no file system takes."""
    wrong = _wrong(path)
    if wrong:
        raise MlflowError(INVALID, f"path: Invalid path {_shown(path)}: {wrong}.")
    return path


def folder(path: str) -> str:
    """The same for a folder: "" is the root, and a slash at the end is none."""
    path = path.rstrip("/")
    return checked(path) if path else ""


def _wrong(path: str) -> str:
    if not path:
        return "it is empty"
    if len(path) > LONGEST or any(len(part.encode(errors="replace")) > LONGEST_PART_BYTES for part in path.split("/")):
        return f"use at most {LONGEST} characters, and {LONGEST_PART_BYTES} bytes between two slashes"
    for seen in _decodings(path):
        if any(ord(sign) < 32 or 127 <= ord(sign) < 160 for sign in seen):
            return "it has control characters; leave them out"
        if "\\" in seen:
            return "it has a backslash; separate folders by '/'"
        if seen.startswith("/") or _DRIVE.match(seen):
            return "it is absolute; give it relative to the run's artifacts"
        if any(part in ("", ".", "..") for part in seen.split("/")):
            return "it has a part that is empty, '.' or '..'; leave that out"
    if "\ufffd" in path or any(0xD800 <= ord(sign) < 0xE000 for sign in path):
        return "it is not UTF-8"
    return ""


def _decodings(path: str) -> list[str]:
    """The path as it is, and as each further decoding of `%` would have it: a client or a proxy may do one more."""
    found = [path]
    while len(found) <= _MOST_DECODED and (decoded := unquote(found[-1], errors="surrogateescape")) != found[-1]:
        found.append(decoded)
    return found


def _shown(path: str) -> str:
    return repr(path if len(path) <= 120 else f"{path[:120]}…")
