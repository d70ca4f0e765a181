"""Where a client says that a file is: checked before anything is looked up.

`<experiment>/<run>/artifacts/<path>` and `<experiment>/models/<model>/artifacts/<path>`, as the artifact
addresses that the hub gives to clients."""

from __future__ import annotations

import re
from dataclasses import dataclass

from starlette.convertors import PathConvertor, register_url_convertor

from tracking.mlflow.protocol.errors import INVALID, MlflowError
from workspaces.stored_files import paths as stored_paths

EXPERIMENT = re.compile(r"\d{1,18}\Z")
RUN = re.compile(r"[0-9a-f]{32}\Z")
MODEL = re.compile(r"m-[0-9a-f]{32}\Z")


class _Told(PathConvertor):
    """The rest of an address, line breaks too: what is wrong with it is said here and not by a missing
    page."""

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
        raise MlflowError(
            INVALID, f"path: {_shown(text)} names nothing here. Give {where}, as the run's artifact_uri says."
        )
    if not rest and not is_folder:
        raise MlflowError(INVALID, "path: name a file below 'artifacts/'.")
    return Address(int(head[0]), head[owner_at], checked("/".join(rest)) if rest else "")


def checked(path: str) -> str:
    """A path below a root, as it is; raises MlflowError for one that could lead out of it, or that no file
    system takes."""
    wrong = stored_paths.problem(path)
    if wrong:
        raise MlflowError(INVALID, f"path: Invalid path {_shown(path)}: {wrong}.")
    return path


def folder(path: str) -> str:
    """The same for a folder: "" is the root, and a slash at the end is none."""
    path = path.rstrip("/")
    return checked(path) if path else ""


def _shown(path: str) -> str:
    return repr(path if len(path) <= 120 else f"{path[:120]}…")
