"""Checks the hub's answer to a request for the secrets of an attempt."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from trainhub_launch.errors import WireError


class SecretValues(NamedTuple):
    """`values`: secret name -> value. `masked`: the texts for which logs are masked."""

    values: Mapping[str, str]
    masked: tuple[str, ...]


def parse(answer: object) -> SecretValues:
    """Returns the checked answer. Raises WireError."""
    values = answer.get("values") if isinstance(answer, dict) else None
    masked = answer.get("masked") if isinstance(answer, dict) else None
    if not isinstance(values, dict) or not isinstance(masked, list):
        raise WireError("secrets must be an object with values and masked")
    for text in (*values, *values.values(), *masked):
        # A variable of an environment cannot contain NUL.
        if not isinstance(text, str) or "\0" in text:
            raise WireError("names and values of secrets must be texts without NUL")
    return SecretValues(values, tuple(masked))
