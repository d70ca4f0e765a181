from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import fields
from typing import Any, TypeVar

R = TypeVar("R", bound="Record")
_inner_types: dict[type, dict[str, Any]] = {}


class Record:
    """A JSON object of the hub. Fields that this version of the package does not know are left out, and those
    that an older hub does not send have their defaults. `json`: the object as it came."""

    json: Mapping[str, Any] = {}

    @classmethod
    def from_json(cls: type[R], data: Mapping[str, Any]) -> R:
        record = cls.__new__(cls)
        record.update(data, with_defaults=True)
        return record

    def update(self, data: Mapping[str, Any], *, with_defaults: bool = False) -> None:
        """Takes over the fields of `data`."""
        self.json = data
        inner = _types_of_fields(type(self))
        defaults = type(self)() if with_defaults else None
        for name in inner:
            key = name.rstrip("_")
            if key in data:
                setattr(self, name, _convert(data[key], inner[name]))
            elif defaults is not None:
                setattr(self, name, getattr(defaults, name))


def _types_of_fields(cls: type) -> dict[str, Any]:
    """Returns the record class of each field, None for one that holds no records."""
    if cls not in _inner_types:
        types = {}
        for field in fields(cls):
            namespace = vars(sys.modules[_module_of(cls, field.name)])
            name = str(field.type).replace(" | None", "").replace("list[", "").strip("]")
            kind = namespace.get(name)
            types[field.name] = kind if isinstance(kind, type) and issubclass(kind, Record) else None
        _inner_types[cls] = types
    return _inner_types[cls]


def _module_of(cls: type, field: str) -> str:
    return next(base.__module__ for base in cls.__mro__ if field in vars(base).get("__annotations__", {}))


def _convert(value: Any, kind: Any) -> Any:
    if kind is None:
        return value
    if isinstance(value, list):
        return [_convert(item, kind) for item in value]
    return kind.from_json(value) if isinstance(value, Mapping) else value
