"""Types of what `json.loads` returns and `json.dumps` takes, for code that passes JSON on."""

from __future__ import annotations

# Not typing.TYPE_CHECKING: the first process of every rank imports this module, and `typing` takes it 7 ms.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import TypeAlias

# Covariant containers, so that a `dict[str, str]` is a JsonValue, too.
JsonValue: TypeAlias = "str | int | float | bool | Sequence[JsonValue] | Mapping[str, JsonValue] | None"
# What to build an object in; read-only parameters take `Mapping[str, JsonValue]`.
JsonObject: TypeAlias = "dict[str, JsonValue]"
