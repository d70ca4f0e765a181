"""Values from the wire: what came as plain data, checked field by field."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from itertools import chain
from typing import Any, TypeVar, cast

from trainhub_launch.errors import WireError

_T = TypeVar("_T")
_PLAIN: dict[str, tuple[type, ...]] = {
    "str": (str,), "int": (int,), "float": (int, float), "bytes": (bytes,), "bool": (bool,), "None": (type(None),),
}


def read(kind: type[_T], data: Mapping[str, Any]) -> _T:
    """Build `kind`, refusing a plain field of another type: what follows puts these into paths, files and rows."""
    made = kind(**data)
    for spot in fields(cast("Any", kind)):
        allowed = [_PLAIN[name] for name in str(spot.type).split(" | ") if name in _PLAIN]
        value = getattr(made, spot.name)
        if allowed and not isinstance(value, tuple(chain(*allowed))):
            raise WireError(f"{kind.__name__}.{spot.name} is {type(value).__name__}, not {spot.type}")
    return made


def numbers_of(data: Any, what: str) -> dict[str, float]:
    """A mapping of names to numbers."""
    if not isinstance(data, Mapping):
        raise WireError(f"{what} must be a mapping")
    for value in data.values():
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise WireError(f"{what} must hold numbers, not {type(value).__name__}")
    return {str(name): value for name, value in data.items()}
