"""Checks decoded messages, field by field, and makes dataclasses of them."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import fields
from functools import cache
from itertools import chain
from typing import Any, TypeVar, cast

from trainhub_launch.errors import WireError

# A refusal repeats at most this many characters of what was sent.
MAX_QUOTED = 200
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


def read(kind: type[_T], data: Mapping[str, object]) -> _T:
    """Returns a `kind` (a dataclass) made from `data`. Raises WireError for a plain field of a wrong type,
    because the values are used in paths, files and rows, and for an unknown field; raises TypeError for a
    missing one."""
    try:
        message = kind(**data)
    except TypeError:
        names = {spot.name for spot in fields(cast("Any", kind))}
        if extra := next((name for name in data if name not in names), None):
            raise WireError(
                f"{kind.__name__} has no field {extra[:MAX_QUOTED]}: whoever sent it is newer; "
                "upgrade the hub first, and then the nodes"
            ) from None
        raise
    for name, allowed, content in _plain_fields(cast("Hashable", kind)):
        value = getattr(message, name)
        # `bool` is a subclass of `int`, but True is no number of bytes.
        if not isinstance(value, allowed) or (type(value) is bool and bool not in allowed):
            raise WireError(f"{kind.__name__}.{name} is {type(value).__name__}, not {content}")
    return message


def numbers_of(data: object, what: str) -> dict[str, float]:
    """Returns `data` as a mapping of names to numbers. Raises WireError for anything else; `what` is its name
    in the message."""
    if type(data) is not dict:
        raise WireError(f"{what} must be a mapping")
    # Thousands of mappings arrive each second, so they are checked by C code, without a loop in Python.
    if not _NAMES.issuperset(map(type, data)):
        raise WireError(f"the names of {what} must be texts")
    if not _NUMBERS.issuperset(map(type, data.values())):
        wrong = next(type(value).__name__ for value in data.values() if type(value) not in _NUMBERS)
        raise WireError(f"{what} must hold numbers, not {wrong}")
    return data


@cache
def _plain_fields(kind: object) -> tuple[tuple[str, tuple[type, ...], str], ...]:
    """Returns name, permitted types and annotation of each field that holds plain data."""
    plain = []
    for spot in fields(cast("Any", kind)):
        # Annotations are strings in modules that import `annotations` from __future__, as all of ours do.
        # Names that are no plain type, such as tuple[…], are checked by the caller.
        allowed = [_PLAIN[name] for name in str(spot.type).split(" | ") if name in _PLAIN]
        if allowed:
            plain.append((spot.name, tuple(chain(*allowed)), str(spot.type)))
    return tuple(plain)
