"""What keys and values may be, by MLflow's rules."""

from __future__ import annotations

import hashlib
import posixpath
import re
from collections.abc import Iterable

from tracking.mlflow.protocol.errors import INVALID, MlflowError
from tracking.mlflow.protocol.fields import Asked, invalid, missing, text

LONGEST_KEY = 250
LONGEST_PARAM = 6000
LONGEST_TAG = 8000
LONGEST_EXPERIMENT_TAG = 20_000
LONGEST_NAME = 500
"""Of experiments, runs and logged models, as in MLflow."""
FULL_NAME = "trainhub.full_name"
"""The tag with the whole name of what had a longer one."""
FULL_KEY = "trainhub.full_key."
"""Beginning of the tag with the whole name of a metric, param or tag that had a longer one."""
_HASH_LENGTH = 12
_KEY = re.compile(r"[/\w.\- :]*")
_CHARACTERS = (
    "Names may only contain alphanumerics, underscores (_), dashes (-), periods (.), spaces ( ), "
    "colon(:) and slashes (/)."
)
_PATH = (
    "Names may be treated as files in certain cases, and must not resolve to other names when treated "
    "as such. "
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
    return shortened(found, LONGEST_KEY)


def shortened(name: str, longest: int) -> str:
    """Cut off a name that is too long; a hash of the whole keeps two such names apart.

    MLflow's server refuses most of these, which would end a training before it begins.
    """
    if len(name) <= longest:
        return name
    return f"{name[: longest - _HASH_LENGTH - 1]}_{_hash(name)}"


def full_name(name: str, longest_value: int = LONGEST_TAG) -> dict[str, str]:
    """Return the tag that tells the whole name of a run or an experiment; empty where it was not too long."""
    return {FULL_NAME: name[:longest_value]} if len(name) > LONGEST_NAME else {}


def full_keys(names: Iterable[object]) -> dict[str, str]:
    """Return the tags that tell the whole names of those metrics, params and tags that are too long."""
    long = [name for name in names if isinstance(name, str) and len(name) > LONGEST_KEY]
    return {f"{FULL_KEY}{_hash(name)}": name[:LONGEST_TAG] for name in long}


def _hash(name: str) -> str:
    return hashlib.sha256(name.encode("utf-8", "replace")).hexdigest()[:_HASH_LENGTH]


def value(asked: Asked, longest: int, path: str = "value") -> str:
    """What a param or a tag says. Too much is cut off, as MLflow's server does."""
    return (text(asked, "value", path) or "")[:longest]


def at_most(found: str, longest: int, path: str) -> str:
    if len(found) > longest:
        raise MlflowError(INVALID, f"'{path}' exceeds the maximum length of {longest} characters")
    return found


def experiment_name(found: str | None) -> str:
    if not found or not found.strip():
        raise MlflowError(INVALID, f"Invalid experiment name: '{found or ''}'")
    return shortened(found, LONGEST_NAME)
