"""YAML, where PyYAML is there to read it. Scalars are those of YAML 1.2, as in JSON: `1e-3` is a number, `no`
a text, and there are no dates."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, NamedTuple

from trainhub_sdk.errors import TrainHubError

_TAG = "tag:yaml.org,2002:"
_SCALARS = (
    ("bool", r"true|True|TRUE|false|False|FALSE", "tTfF"),
    ("null", r"~|null|Null|NULL|", ("~", "n", "N", "")),
    ("int", r"[-+]?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+", "-+0123456789"),
    ("float", r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?", "-+.0123456789"),
    ("float", r"[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)", "-+."),
    ("merge", r"<<", "<"),
)


class ParsedYaml(NamedTuple):
    """`lines`: the line of each field by its path (`resources.slots_per_trial`, `labels.0`), from 1."""

    value: Any
    lines: Mapping[str, int]


def parse_yaml(text: str, name: str) -> ParsedYaml:
    """Returns the only document in a text. `name`: of its file, for messages. Raises TrainHubError if it is
    not YAML, or if PyYAML is missing."""
    try:
        import yaml
    except ImportError:
        raise TrainHubError(
            f"{name} is YAML: install PyYAML beside this program, or write it as JSON."
        ) from None
    loader = _loader_class(yaml)(text)
    try:
        node = loader.get_single_node()
        lines: dict[str, int] = {}
        if node is None:
            return ParsedYaml(None, lines)
        _collect_lines(node, "", lines, set())
        return ParsedYaml(loader.construct_document(node), lines)
    except yaml.YAMLError as error:
        raise TrainHubError(f"{name} is not YAML: {error}.") from error
    finally:
        loader.dispose()


def _loader_class(yaml: Any) -> Any:
    class Yaml12Loader(yaml.SafeLoader):  # type: ignore[misc]
        yaml_implicit_resolvers: dict[str, Any] = {}

        def construct_yaml_int(self, node: Any) -> int:
            text = self.construct_scalar(node)
            # Zeros in front would be octal for YAML 1.1, and nothing for Python.
            return int(text, 0) if text[:2] in ("0o", "0x") else int(text)

    Yaml12Loader.add_constructor(f"{_TAG}int", Yaml12Loader.construct_yaml_int)
    for kind, pattern, first in _SCALARS:
        Yaml12Loader.add_implicit_resolver(f"{_TAG}{kind}", re.compile(f"(?:{pattern})\\Z"), list(first))
    return Yaml12Loader


def _collect_lines(node: Any, path: str, lines: dict[str, int], seen: set[int]) -> None:
    """Adds the lines of what is below `node`. An alias leads to a node that was seen before, perhaps one
    above itself."""
    if id(node) in seen or isinstance(node.value, str):
        return
    seen.add(id(node))
    prefix = f"{path}." if path else ""
    for number, item in enumerate(node.value):
        key, value = item if isinstance(item, tuple) else (None, item)
        field = f"{prefix}{number if key is None else key.value}"
        lines.setdefault(field, (key or value).start_mark.line + 1)
        _collect_lines(value, field, lines, seen)
