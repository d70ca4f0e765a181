"""Parses and checks the artifact addresses that clients send.

An address is `<experiment>/<run>/artifacts/<path>` or `<experiment>/models/<model>/artifacts/<path>`, which
is the form of the `artifact_uri` that the hub sends to clients."""

from __future__ import annotations

import re
from dataclasses import dataclass

from starlette.convertors import PathConvertor, register_url_convertor

from tracking.mlflow.protocol.errors import INVALID, MlflowError
from workspaces.stored_files import paths as stored_paths

EXPERIMENT = re.compile(r"\d{1,18}\Z")
RUN = re.compile(r"[0-9a-f]{32}\Z")
MODEL = re.compile(r"m-[0-9a-f]{32}\Z")


class _ArtifactPathConvertor(PathConvertor):
    """Matches the rest of a URL, also with line breaks, so that a wrong path gets an error message instead of
    a 404."""

    regex = "(?s:.*)"


# Names of patterns are global in Starlette: a common name would replace the pattern of another package.
register_url_convertor("artifact_path", _ArtifactPathConvertor())


@dataclass(frozen=True)
class Address:
    """`owner` is the id of a run or a logged model (`m-…`); `path` is below it, "" for its root."""

    experiment: int
    owner: str
    path: str

    @property
    def is_model(self) -> bool:
        return self.owner.startswith("m-")


def parse_address(text: str, *, is_folder: bool = False) -> Address:
    """Parses the address of a file or, with `is_folder`, of a folder, which may be the root. Raises
    MlflowError."""
    trimmed = text.rstrip("/") if is_folder else text
    parts = trimmed.split("/")
    owner_at = 2 if parts[1:2] == ["models"] else 1
    pattern = MODEL if owner_at == 2 else RUN
    head, rest = parts[: owner_at + 2], parts[owner_at + 2 :]
    is_valid = len(head) == owner_at + 2 and head[-1] == "artifacts" and pattern.match(head[owner_at])
    if not is_valid or not EXPERIMENT.match(head[0]):
        forms = "'<experiment id>/<run id>/artifacts/…' or '<experiment id>/models/<model id>/artifacts/…'"
        raise MlflowError(
            INVALID,
            f"path: {_quote(text)} is not an artifact address. Use {forms}, as the run's artifact_uri says.",
        )
    if not rest and not is_folder:
        raise MlflowError(INVALID, "path: name a file below 'artifacts/'.")
    return Address(int(head[0]), head[owner_at], check_path("/".join(rest)) if rest else "")


def check_path(path: str) -> str:
    """Returns the relative path unchanged. Raises MlflowError if it leaves its root or is no valid file
    name."""
    wrong = stored_paths.path_problem(path)
    if wrong:
        raise MlflowError(INVALID, f"path: Invalid path {_quote(path)}: {wrong}.")
    return path


def folder_path(path: str) -> str:
    """Returns the checked path of a folder without a trailing slash; "" is the root. Raises MlflowError."""
    path = path.rstrip("/")
    return check_path(path) if path else ""


def _quote(path: str) -> str:
    return repr(path if len(path) <= 120 else f"{path[:120]}…")
