"""Values from the wire: what came as plain data, checked field by field."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import fields
from functools import cache
from itertools import chain
from typing import Any, TypeVar, cast

from trainhub_launch.errors import WireError

_T = TypeVar("_T")
_PLAIN: dict[str, tuple[type, ...]] = {
    "str": (str,),
    "int": (int,),
    "float": (int, float),
    "bytes": (bytes,),
    "bool": (bool,),
    "None": (type(None),),
}
_NUMBERS, _NAMES = frozenset((int, float)), frozenset((str,))


def read(kind: type[_T], data: Mapping[str, Any]) -> _T:
    """Build `kind`, refusing a plain field of another type: what follows puts these into paths, files and
    rows."""
    made = kind(**data)
    for name, allowed, told in _plain_fields(cast("Hashable", kind)):
        value = getattr(made, name)
        if not isinstance(value, allowed):
            raise WireError(f"{kind.__name__}.{name} is {type(value).__name__}, not {told}")
    return made


def numbers_of(data: Any, what: str) -> dict[str, float]:
    """A mapping of names to numbers."""
    if (
        type(data) is dict
        and _NUMBERS.issuperset(map(type, data.values()))
        and _NAMES.issuperset(map(type, data))
    ):
        # Thousands of them come each second: no look at each by Python's own hand.
        return data
    if not isinstance(data, Mapping):
        raise WireError(f"{what} must be a mapping")
    for value in data.values():
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise WireError(f"{what} must hold numbers, not {type(value).__name__}")
    return {str(name): value for name, value in data.items()}


@cache
def _plain_fields(kind: Any) -> tuple[tuple[str, tuple[type, ...], str], ...]:
    """Name, types and annotation of each field that holds plain data."""
    found = []
    for spot in fields(cast("Any", kind)):
        allowed = [_PLAIN[name] for name in str(spot.type).split(" | ") if name in _PLAIN]
        if allowed:
            found.append((spot.name, tuple(chain(*allowed)), str(spot.type)))
    return tuple(found)
