"""What keys and values may be, by MLflow's rules."""

from __future__ import annotations

import posixpath
import re

from tracking.mlflow.errors import INVALID, MlflowError
from tracking.mlflow.fields import Asked, invalid, missing, text

LONGEST_KEY = 250
LONGEST_PARAM = 6000
LONGEST_TAG = 8000
LONGEST_EXPERIMENT_TAG = 20_000
LONGEST_NAME = 250
"""Of an experiment; MLflow allows 500, which no address bar shows."""
_KEY = re.compile(r"[/\w.\- :]*")
_CHARACTERS = (
    "Names may only contain alphanumerics, underscores (_), dashes (-), periods (.), spaces ( ), colon(:) and slashes (/)."
)
_PATH = (
    "Names may be treated as files in certain cases, and must not resolve to other names when treated as such. "
    "This name would resolve to {!r}"
)


def key(asked: Asked, name: str = "key", path: str = "") -> str:
    """The name of a metric, a param or a tag."""
    path = path or name
    found = text(asked, name, path)
    if found is None:
        raise missing(path)
    if not _KEY.fullmatch(found):
        raise invalid(path, found, _CHARACTERS)
    resolved = posixpath.normpath(found)
    if resolved != found or resolved == "." or resolved.startswith(("..", "/")):
        raise invalid(path, found, _PATH.format(resolved))
    return at_most(found, LONGEST_KEY, path)


def value(asked: Asked, longest: int, path: str = "value") -> str:
    """What a param or a tag says. Too much is cut off, as MLflow's server does."""
    return (text(asked, "value", path) or "")[:longest]


def at_most(found: str, longest: int, path: str) -> str:
    if len(found) > longest:
        raise MlflowError(INVALID, f"'{path}' exceeds the maximum length of {longest} characters")
    return found


def experiment_name(found: str | None, path: str = "name") -> str:
    if not found or not found.strip():
        raise MlflowError(INVALID, f"Invalid experiment name: '{found or ''}'")
    return at_most(found, LONGEST_NAME, path)
