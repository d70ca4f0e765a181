"""Values as YAML for parsers of other programs: texts of people are always quoted or blocks."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import yaml

from jobs.exports.spec_comment import comment_lines
from trainhub_launch.spec import RunSpec

# A text that no version of YAML takes for something else.
_PLAIN = re.compile(r"[A-Za-z][A-Za-z0-9_./-]*")
_SPECIAL = frozenset({"y", "n", "yes", "no", "on", "off", "true", "false", "null", "nan", "inf"})
_LONGEST_LINE = 2**20


class _Dumper(yaml.SafeDumper):
    pass


def _text(dumper: _Dumper, text: str) -> yaml.Node:
    style = '"'
    if "\n" in text and all(char == "\n" or char.isprintable() for char in text):
        style = "|"
    elif _PLAIN.fullmatch(text) and text.lower() not in _SPECIAL:
        style = ""
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)


_Dumper.add_representer(str, _text)


def document_text(spec: RunSpec, fields: Mapping[str, Any]) -> str:
    """Returns a file of YAML that begins with the comment that holds the spec. `fields`: dicts, lists and
    scalars by their names; empty ones are left out."""
    text = yaml.dump(
        {name: value for name, value in fields.items() if value},
        Dumper=_Dumper,
        sort_keys=False,
        allow_unicode=True,
        default_flow_style=False,
        width=_LONGEST_LINE,
    )
    return "\n".join([*comment_lines(spec), text])
