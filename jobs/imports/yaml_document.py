"""YAML of other launchers, with the line of each field, and which fields nobody has read."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from yaml import MappingNode, Node, SafeLoader, ScalarNode, SequenceNode

from environments.safe_yaml import YamlRules, compose_yaml, error_at, node_line
from trainhub_launch.errors import SpecError

FIELD = "text"
MAX_TEXT_BYTES = 256 * 1024
MAX_DEPTH = 12
MAX_VALUES = 5000
RULES = YamlRules(
    max_bytes=MAX_TEXT_BYTES,
    max_depth=MAX_DEPTH,
    if_large="a file of a launcher is shorter",
    if_deep="no launcher reads so many",
    if_empty="paste the whole file",
    max_values=MAX_VALUES,
)
Path = tuple[str, ...]
_TAG = "tag:yaml.org,2002:"


class YamlDocument:
    """A document whose fields are named by their paths: ("resources", "cpus"), ("commands", "0")."""

    def __init__(self, text: str) -> None:
        self._root = compose_yaml(text, FIELD, RULES)
        if not isinstance(self._root, MappingNode):
            raise SpecError(FIELD, "must be a mapping, such as 'name: train'")
        self._nodes: dict[Path, Node] = {}
        self._names: dict[Path, list[str]] = {}
        self._read: set[Path] = set()
        self._collect(self._root, ())

    def _collect(self, node: Node, path: Path) -> None:
        self._nodes[path] = node
        self._names[path] = []
        for name, value in _items(node):
            if (*path, name) in self._nodes:
                raise error_at(FIELD, value, f"{name!r:.80} stands there twice; remove one")
            self._names[path].append(name)
            self._collect(value, (*path, name))

    def has(self, *path: str) -> bool:
        return path in self._nodes

    def line(self, *path: str) -> int:
        return node_line(self._nodes[path])

    def text_line(self, *path: str) -> int:
        """Returns the line on which the text of a field begins: below the name, if it is a block."""
        node = self._nodes[path]
        return node_line(node) + (isinstance(node, ScalarNode) and node.style in ("|", ">"))

    def is_mapping(self, *path: str) -> bool:
        return isinstance(self._nodes.get(path), MappingNode)

    def is_list(self, *path: str) -> bool:
        return isinstance(self._nodes.get(path), SequenceNode)

    def text(self, *path: str) -> str:
        """Returns a scalar as it stands in the file, "" if it is not there, null, or no scalar."""
        self._read.add(path)
        node = self._nodes.get(path)
        return str(node.value) if isinstance(node, ScalarNode) and node.tag != f"{_TAG}null" else ""

    def value(self, *path: str) -> Any:
        """Returns a scalar: a number, a truth value, None or a text; None also if it is not there or no
        scalar."""
        self._read.add(path)
        node = self._nodes.get(path)
        return _scalar(node) if isinstance(node, ScalarNode) else None

    def names(self, *path: str) -> list[str]:
        """Returns the names of a mapping, or the numbers of the items of a list."""
        return self._names.get(path, [])

    def mark_read(self, *path: str) -> None:
        """Says that a field and all below it need no further note."""
        self._read.add(path)

    def unread(self) -> Iterator[Path]:
        """Yields the outermost fields of which nothing was read."""
        touched = {path[:length] for path in self._read for length in range(len(path))}
        yield from self._unread((), touched)

    def _unread(self, path: Path, touched: set[Path]) -> Iterator[Path]:
        if path in touched and path not in self._read:
            for name in self._names.get(path, ()):
                yield from self._unread((*path, name), touched)
        elif path and path not in self._read:
            yield path


def _items(node: Node) -> Iterator[tuple[str, Node]]:
    if isinstance(node, SequenceNode):
        yield from ((str(number), value) for number, value in enumerate(node.value))
    elif isinstance(node, MappingNode):
        for key, value in node.value:
            if not isinstance(key, ScalarNode):
                raise error_at(FIELD, key, "has a list or a mapping as a name; write a text")
            yield str(key.value), value


def _scalar(node: ScalarNode) -> Any:
    text = str(node.value)
    if node.tag == f"{_TAG}null":
        return None
    try:
        if node.tag == f"{_TAG}bool":
            return SafeLoader.bool_values[text.lower()]
        if node.tag == f"{_TAG}int":
            return int(text.replace("_", ""))
        if node.tag == f"{_TAG}float":
            return float(text.replace("_", ""))
    except ValueError:
        # Such as 1:30, which YAML 1.1 takes for a number.
        return text
    return text
