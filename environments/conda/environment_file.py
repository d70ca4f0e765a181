"""Reads the YAML of a conda environment, and refuses by line what an environment cannot be made from."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from yaml import MappingNode, Node, ScalarNode, SequenceNode

from environments.conda.channel_list import DEFAULT_CHANNEL, channel_urls
from environments.repositories.repository_address import PREFIX
from environments.requirement_list import RequirementList, read_requirements
from environments.safe_yaml import YamlRules, compose_yaml, error_at, node_line
from trainhub_launch.errors import SpecError

FIELD = "conda"
MAX_YAML_BYTES = 128 * 1024
MAX_YAML_DEPTH = 6
RULES = YamlRules(
    max_bytes=MAX_YAML_BYTES,
    max_depth=MAX_YAML_DEPTH,
    if_large="list only what the code imports",
    if_deep="write a plain list of packages",
    if_empty="list packages below 'dependencies:', such as '- python=3.11'",
)
MAX_DEPENDENCIES = 500
MAX_CHANNELS = 20
MAX_LENGTH = 500
KEYS = ("name", "channels", "dependencies", "prefix")
# Key of other tools -> what to do instead.
_REMEDIES = {
    "variables": "set them as environment variables of the run",
    "platforms": "remove it; environments are solved for Linux (x86-64)",
    "pip": "put it into the list of dependencies, as an item '- pip:' with a list below it",
    "docker": "make an environment of another kind for an image",
}
_VIRTUAL = re.compile(r"(__[a-z0-9_]+)\s*(?:>=|==?)\s*(\d+(?:\.\d+){0,3})\Z")
_DEPENDENCY = re.compile(
    r"(?:(?P<channel>[^\s\[\]]+)::)?(?P<name>[A-Za-z0-9_][A-Za-z0-9_.-]*)"
    r"(?P<rest>(?:\s*[ =<>!~][-A-Za-z0-9_.*+!=<>,|~ ()]*)?)\Z"
)
_IS_FILE = re.compile(r"[./~]|[A-Za-z]+://|.*\.(conda|tar\.bz2)\Z")
_PIP_LINE = re.compile(r"line (\d+): ")


@dataclass(frozen=True)
class EnvironmentFile:
    """`channels`: their addresses, the strongest first. `dependencies`: as rattler reads them.
    `virtual_packages`: what the file says of the machines ("__cuda" -> "12.4"). `pip`: the requirements
    below `pip:`, None if there are none. `names`: what the file asks for, as lists show it."""

    channels: tuple[str, ...]
    dependencies: tuple[str, ...]
    virtual_packages: Mapping[str, str] = field(default_factory=dict)
    pip: RequirementList | None = None
    names: tuple[str, ...] = ()


def read_environment_file(text: str, channel_error: Callable[[str], str] | None = None) -> EnvironmentFile:
    """Returns what the YAML asks for. Raises SpecError, which names the line. `channel_error`: says of the
    address of a channel why it is refused, "" if it is not."""
    root = compose_yaml(text, FIELD, RULES)
    if not isinstance(root, MappingNode):
        raise SpecError(
            FIELD, "must be a mapping with 'dependencies', such as 'dependencies:' and '- python=3.11'"
        )
    values = _mapping(root)
    channels = _channels(values.get("channels"), channel_error)
    if "dependencies" not in values:
        raise SpecError(FIELD, "has no 'dependencies'; list packages there, such as '- python=3.11'")
    reader = _DependencyReader(channels)
    for item in _items(values["dependencies"], "dependencies", MAX_DEPENDENCIES):
        reader.read(item)
    if not reader.dependencies:
        raise SpecError(
            FIELD, "names no package of conda; list some below 'dependencies', such as '- python=3.11'"
        )
    requirements = reader.requirements()
    names = (*reader.names, *(requirements.requirements if requirements else ()))
    return EnvironmentFile(
        tuple(dict.fromkeys(url for urls in channels.values() for url in urls)),
        tuple(reader.dependencies),
        reader.virtual_packages,
        requirements,
        names,
    )


def _mapping(root: MappingNode) -> dict[str, Node]:
    values: dict[str, Node] = {}
    for key_node, value in root.value:
        key = _text(key_node, "a key")
        if key not in KEYS:
            remedy = _REMEDIES.get(key, f"remove it; there are {', '.join(KEYS)}")
            raise error_at(FIELD, key_node, f"{key!r:.50} has no meaning here: {remedy}")
        if key in values:
            raise error_at(FIELD, key_node, f"{key!r} is given twice; write it once")
        values[key] = value
    # Both are of the machine where the file was made; the environment has the name that it gets here.
    for key in ("name", "prefix"):
        if key in values:
            _text(values[key], f"{key!r}")
    return values


def _channels(node: Node | None, channel_error: Callable[[str], str] | None) -> dict[str, tuple[str, ...]]:
    """Returns the addresses of each channel of the list, by its name there."""
    channels: dict[str, tuple[str, ...]] = {}
    for item in _items(node, "channels", MAX_CHANNELS) if node is not None else ():
        name = _text(item, "a channel")
        if name == "nodefaults":
            continue
        try:
            channels[name] = channel_urls(name)
        except ValueError as error:
            raise error_at(FIELD, item, str(error)) from error
        for url in channels[name]:
            if channel_error is not None and (sentence := channel_error(url)):
                raise error_at(FIELD, item, sentence)
    return channels or {DEFAULT_CHANNEL: channel_urls(DEFAULT_CHANNEL)}


class _DependencyReader:
    def __init__(self, channels: Mapping[str, tuple[str, ...]]) -> None:
        self._channels = channels
        self._pip: list[tuple[int, str]] | None = None
        self.dependencies: list[str] = []
        self.names: list[str] = []
        self.virtual_packages: dict[str, str] = {}

    def read(self, item: Node) -> None:
        if isinstance(item, MappingNode):
            self._read_pip(item)
            return
        text = _text(item, "a dependency")
        if text.startswith("__"):
            self._read_virtual(item, text)
            return
        self.names.append(text)
        self.dependencies.append(self._dependency(item, text))

    def requirements(self) -> RequirementList | None:
        """Returns what stands below `pip:`. Raises SpecError with the line of the YAML."""
        if not self._pip:
            return None
        for number, text in self._pip:
            if text.lstrip().startswith("--no-binary") or f"{PREFIX}http" in text:
                raise SpecError(
                    FIELD,
                    f"line {number}: nothing below 'pip:' is built from source; remove the line, or make "
                    "an environment from requirements",
                )
        try:
            return read_requirements("\n".join(text for _, text in self._pip))
        except SpecError as error:
            match = _PIP_LINE.match(error.message)
            if match is None:
                raise SpecError(FIELD, f"below 'pip:': {error.message}") from error
            line = self._pip[int(match[1]) - 1][0]
            raise SpecError(FIELD, f"line {line}: {error.message[match.end() :]}") from error

    def _read_pip(self, item: MappingNode) -> None:
        keys = [_text(key, "a key") for key, _ in item.value]
        if keys != ["pip"]:
            raise error_at(FIELD, item, "a dependency is a text such as numpy=2.1, or a list below 'pip:'")
        if self._pip is not None:
            raise error_at(FIELD, item, "'pip:' is given twice; put all its lines below one")
        self._pip = []
        ((_, value),) = item.value
        for line in _items(value, "pip", MAX_DEPENDENCIES):
            text = _text(line, "a requirement")
            if "\n" in text or text.endswith("\\"):
                raise error_at(FIELD, line, "a requirement must stand in one line")
            self._pip.append((node_line(line), text))

    def _read_virtual(self, item: Node, text: str) -> None:
        match = _VIRTUAL.match(text)
        if match is None:
            raise error_at(
                FIELD, item, f"{text!r:.50} says what the nodes have; give its version, such as __cuda=12.4"
            )
        self.virtual_packages[match[1]] = match[2]
        self.dependencies.append(f"{match[1]} >={match[2]}")

    def _dependency(self, item: Node, text: str) -> str:
        if "git+" in text or _IS_FILE.match(text.partition("::")[2] or text):
            raise error_at(
                FIELD,
                item,
                "a file or an address cannot be installed here; name a package of a channel, such as "
                "numpy=2.1",
            )
        match = _DEPENDENCY.match(text)
        if match is None or len(text) > MAX_LENGTH:
            raise error_at(
                FIELD, item, f"{text!r:.100} is not a package; write one such as numpy=2.1 or 'numpy>=2,<3'"
            )
        if match["channel"] is None:
            return text
        urls = self._channels.get(match["channel"])
        if urls is None:
            raise error_at(
                FIELD, item, f"{match['channel']!r:.100} is not in the list of channels; add it there"
            )
        return f"{urls[0]}::{match['name']}{match['rest']}"


def _items(node: Node, name: str, limit: int) -> list[Node]:
    if not isinstance(node, SequenceNode):
        raise error_at(FIELD, node, f"{name!r} must be a list, each item in a line that begins with '- '")
    if len(node.value) > limit:
        raise error_at(
            FIELD, node, f"{name!r} must have at most {limit} items; list only what the code imports"
        )
    return list(node.value)


def _text(node: Node, what: str) -> str:
    if not isinstance(node, ScalarNode) or not node.value.strip():
        raise error_at(FIELD, node, f"{what} must be a text")
    if not node.value.isprintable():
        raise error_at(FIELD, node, f"{what} must have no special characters")
    return str(node.value).strip()
