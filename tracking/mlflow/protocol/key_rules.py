"""MLflow's rules for the names and values of metrics, params, tags, runs and experiments."""

from __future__ import annotations

import hashlib
import posixpath
import re
from collections.abc import Iterable

from tracking.mlflow.protocol.errors import INVALID, MlflowError
from tracking.mlflow.protocol.fields import CallArgs, invalid, missing, text

# The limits of MLflow's server.
MAX_KEY_LENGTH = 250
MAX_PARAM_LENGTH = 6000
MAX_TAG_LENGTH = 8000
MAX_EXPERIMENT_TAG_LENGTH = 20_000
# For names of experiments, runs and logged models, as in MLflow.
MAX_NAME_LENGTH = 500
# Key of the tag with the full name of a run, experiment or model whose name was shortened.
FULL_NAME = "trainhub.full_name"
# Prefix of the tag with the full key of a metric, param or tag whose key was shortened.
FULL_KEY = "trainhub.full_key."
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


def key(args: CallArgs, name: str = "key", path: str = "") -> str:
    """Returns the valid key of a metric, param or tag, shortened if needed. Raises MlflowError."""
    path = path or name
    key_name = text(args, name, path)
    if key_name is None:
        raise missing(path)
    if not _KEY.fullmatch(key_name):
        raise invalid(path, key_name, _CHARACTERS)
    resolved = posixpath.normpath(key_name)
    if resolved != key_name or resolved == "." or resolved.startswith(("..", "/")):
        raise invalid(path, key_name, _PATH.format(resolved))
    return shorten_key(key_name, MAX_KEY_LENGTH)


def shorten_key(name: str, max_length: int) -> str:
    """Returns `name` with at most `max_length` characters; a hash of the full name keeps shortened names
    unique.

    MLflow's server rejects most of these, which would end a training before it starts.
    """
    if len(name) <= max_length:
        return name
    return f"{name[: max_length - _HASH_LENGTH - 1]}_{_hash(name)}"


def full_name(name: str, max_length: int = MAX_TAG_LENGTH) -> dict[str, str]:
    """Returns the tag that stores the full name of a run or experiment, or {} if it was not shortened."""
    return {FULL_NAME: name[:max_length]} if len(name) > MAX_NAME_LENGTH else {}


def full_keys(names: Iterable[object]) -> dict[str, str]:
    """Returns the tags that store the full keys of metrics, params and tags whose keys were shortened."""
    long = [name for name in names if isinstance(name, str) and len(name) > MAX_KEY_LENGTH]
    return {f"{FULL_KEY}{_hash(name)}": name[:MAX_TAG_LENGTH] for name in long}


def _hash(name: str) -> str:
    return hashlib.sha256(name.encode("utf-8", "replace")).hexdigest()[:_HASH_LENGTH]


def value(args: CallArgs, max_length: int, path: str = "value") -> str:
    """Returns the value of a param or tag, truncated to `max_length` as MLflow's server does."""
    return (text(args, "value", path) or "")[:max_length]


def check_length(content: str, max_length: int, path: str) -> str:
    if len(content) > max_length:
        raise MlflowError(INVALID, f"'{path}' exceeds the maximum length of {max_length} characters")
    return content


def experiment_name(name: str | None) -> str:
    if not name or not name.strip():
        raise MlflowError(INVALID, f"Invalid experiment name: '{name or ''}'")
    return shorten_key(name, MAX_NAME_LENGTH)
