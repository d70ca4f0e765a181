"""Reads YAML of people: text, lists and mappings only, with the line of each."""

from __future__ import annotations

from dataclasses import dataclass

import yaml

from trainhub_launch.errors import SpecError


@dataclass(frozen=True)
class YamlRules:
    """How large a document may be, and what to do about one that is too large, too deep or empty.
    `max_values`: None = as many as fit."""

    max_bytes: int
    max_depth: int
    if_large: str
    if_deep: str
    if_empty: str
    max_values: int | None = None


def compose_yaml(text: str, field: str, rules: YamlRules) -> yaml.Node:
    """Returns the document without making any object of it. Raises SpecError, which names the line: also for
    tags, and for aliases, with which a short text can stand for a huge one."""
    if len(text.encode(errors="replace")) > rules.max_bytes:
        raise SpecError(field, f"must have at most {rules.max_bytes // 1024} KiB; {rules.if_large}")
    try:
        _check_events(text, field, rules)
        node = yaml.compose(text, Loader=yaml.SafeLoader)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        where = f"line {mark.line + 1}: " if mark else ""
        raise SpecError(field, f"{where}is not YAML: {error.problem or error.context}; correct it") from error
    except yaml.YAMLError as error:
        raise SpecError(
            field, "is not YAML: it has a character that YAML does not allow; remove it"
        ) from error
    if node is None:
        raise SpecError(field, f"is empty; {rules.if_empty}")
    return node


def node_line(node: yaml.Node) -> int:
    return int(node.start_mark.line) + 1


def error_at(field: str, node: yaml.Node, message: str) -> SpecError:
    """Returns the error about this part of the document."""
    return SpecError(field, f"line {node_line(node)}: {message}")


def _check_events(text: str, field: str, rules: YamlRules) -> None:
    # `compose` calls itself for each level; this does not.
    depth, values = 0, 0
    for event in yaml.parse(text, Loader=yaml.SafeLoader):
        line = event.start_mark.line + 1 if event.start_mark else 1
        if isinstance(event, yaml.AliasEvent):
            raise SpecError(
                field, f"line {line}: *{event.anchor} is not possible here; repeat what it stands for"
            )
        tag = getattr(event, "tag", None)
        if tag is not None:
            # As people write it.
            typed = tag.replace("tag:yaml.org,2002:", "!!")
            raise SpecError(field, f"line {line}: the tag {typed!r:.60} is not possible here; remove it")
        values += isinstance(event, yaml.NodeEvent)
        if rules.max_values is not None and values > rules.max_values:
            raise SpecError(field, f"line {line}: has more than {rules.max_values} values; {rules.if_large}")
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1
        if depth > rules.max_depth:
            raise SpecError(field, f"line {line}: has more than {rules.max_depth} levels; {rules.if_deep}")
