"""Scans text: JSON, YAML, notebooks, lists of packages, and prose. Some formats name code to be loaded."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

import yaml

from registry.scanning.formats import keras
from registry.scanning.formats.imports import judge_imports
from registry.scanning.formats.keras import walk
from registry.scanning.formats.source import Source, Unreadable
from registry.scanning.formats.templates import scan_template
from registry.scanning.verdict_names import CLEAN, CONTAINS_CODE, DANGEROUS, Verdict, combine

MAX_JSON_BYTES = 64 * 2**20
MAX_YAML_BYTES = 8 * 2**20
JSON = (".json", ".ipynb", ".jsonl", ".ndjson")
YAML = (".yaml", ".yml")
PROSE = (
    ".txt",
    ".md",
    ".rst",
    ".csv",
    ".tsv",
    ".toml",
    ".ini",
    ".cfg",
    ".jinja",
    ".log",
    ".vocab",
    ".bpe",
    ".tiktoken",
    ".spm",
)
PROSE_NAMES = (
    "license",
    "readme",
    "notice",
    "changelog",
    ".gitattributes",
    ".gitignore",
    "vocab",
    "merges",
    "labels",
    "copying",
    "authors",
)
_PACKAGES = re.compile(r"requirements[\w.-]*\.txt|conda\.ya?ml|python_env\.ya?ml|environment\.ya?ml")
# Options of pip, URLs, version control and direct references (`name @ URL`), also as items of conda.yaml.
_ELSEWHERE = re.compile(r"^\s*-\w|^\s*--\w|://|\bgit\+|\s@\s|^\s*-\s+-")
_PYTHON_TAG = "tag:yaml.org,2002:python/"
LOADS_OWN = "MLflow loads Python code that is stored beside it."
AUTO_MAP = "Transformers runs Python files of the model where trust_remote_code is set."
TARGET = "A configuration names functions to be called."
PACKAGES = "It installs packages from sources other than the usual index, or with options of its own."


def is_prose(source: Source) -> bool:
    return (
        source.extension in PROSE
        or source.base in PROSE_NAMES
        or source.base.split(".")[0] in ("license", "readme", "notice")
    )


def scan_json(source: Source) -> Verdict:
    text = source.whole(MAX_JSON_BYTES).decode("utf-8-sig")
    if source.extension in (".jsonl", ".ndjson"):
        return combine(("", _judge(json.loads(line))) for line in text.splitlines() if line.strip())
    data = json.loads(text)
    if source.extension == ".ipynb":
        return _judge_notebook(data)
    return _judge(data)


def scan_yaml(source: Source) -> Verdict:
    text = source.whole(MAX_YAML_BYTES).decode("utf-8-sig")
    # compose_all() makes nodes with their tags and no objects; load_all() would fail at the first unknown
    # tag.
    tags = sorted({tag for document in yaml.compose_all(text, yaml.CSafeLoader) for tag in _tags(document)})
    if tags:
        return Verdict(
            DANGEROUS,
            tuple(tags),
            "Reading it with YAML's full loader creates Python objects or calls functions.",
        )
    parts = [("", _judge(document)) for document in yaml.load_all(text, yaml.CSafeLoader)]
    if source.base == "mlmodel":
        parts += [("", _judge_mlmodel(document)) for document in yaml.load_all(text, yaml.CSafeLoader)]
    return combine([*parts, ("", _packages(source, text))])


def scan_prose(source: Source) -> Verdict:
    """Judges text that no library runs. In a list of packages it checks where they come from, in a template
    what it accesses."""
    text = source.whole(MAX_JSON_BYTES)
    try:
        prose = text.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise Unreadable("It has the name of a text file, but is not text.") from error
    if "\x00" in prose:
        raise Unreadable("It has the name of a text file, but is not text.")
    template = scan_template(prose) if source.extension == ".jinja" else Verdict(CLEAN)
    return combine([("", template), ("", _packages(source, prose))])


def _judge(data: object) -> Verdict:
    return combine(("", verdict) for verdict in _verdicts(data))


def _verdicts(data: object) -> Iterator[Verdict]:
    if keras.is_config(data):
        yield keras.judge_config(data)
    for item in walk(data):
        if item.get("auto_map") or item.get("custom_pipelines"):
            yield Verdict(
                CONTAINS_CODE, ("auto_map" if item.get("auto_map") else "custom_pipelines",), AUTO_MAP
            )
        # Hydra's `instantiate` calls what `_target_` names.
        target = item.get("_target_")
        if isinstance(target, str):
            module, _, name = target.rpartition(".")
            level = judge_imports([(module, name)]).verdict
            yield Verdict(DANGEROUS if level == DANGEROUS else CONTAINS_CODE, (target,), TARGET)
        template = item.get("chat_template")
        for text in [template] if isinstance(template, str) else _templates(template):
            yield scan_template(text)


def _templates(document: object) -> list[str]:
    """Returns the texts of a list of named templates."""
    if not isinstance(document, list):
        return []
    return [
        item["template"]
        for item in document
        if isinstance(item, dict) and isinstance(item.get("template"), str)
    ]


def _judge_notebook(data: Any) -> Verdict:
    cells = data.get("cells", []) if isinstance(data, dict) else []
    # Notebooks before format 4 have their cells in worksheets.
    if (
        any(isinstance(cell, dict) and cell.get("cell_type") == "code" for cell in cells)
        or "worksheets" in data
    ):
        return Verdict(
            CONTAINS_CODE,
            ("code cells",),
            "A notebook with code, which runs when somebody runs the notebook.",
        )
    return Verdict(CLEAN)


def _judge_mlmodel(data: object) -> Verdict:
    """Judges an MLmodel: MLflow imports `loader_module`, adds `code` to Python's path, and runs
    `model_code_path`."""
    flavors = data.get("flavors", {}) if isinstance(data, dict) else {}
    reasons: list[str] = []
    for name, flavor in flavors.items() if isinstance(flavors, dict) else []:
        if not isinstance(flavor, dict):
            continue
        loader = flavor.get("loader_module")
        if loader is not None and not str(loader).startswith("mlflow."):
            reasons.append(f"{name}.loader_module: {loader}")
        reasons += [
            f"{name}.{key}: {flavor[key]}"
            for key in ("code", "model_code_path", "entrypoint")
            if flavor.get(key)
        ]
    if isinstance(data, dict) and data.get("model_code_path"):
        reasons.append(f"model_code_path: {data['model_code_path']}")
    return Verdict(CONTAINS_CODE, tuple(reasons), LOADS_OWN) if reasons else Verdict(CLEAN)


def _packages(source: Source, text: str) -> Verdict:
    if not _PACKAGES.fullmatch(source.base):
        return Verdict(CLEAN)
    lines = [line.strip() for line in text.splitlines() if not line.lstrip().startswith("#")]
    if source.base.endswith((".yaml", ".yml")):
        lines = [line.removeprefix("- ") for line in lines]
    # `-r requirements…` names another list of the version, which is judged by itself.
    packages = tuple(
        line for line in lines if _ELSEWHERE.search(line) and not line.startswith("-r requirements")
    )
    return Verdict(CONTAINS_CODE, packages, PACKAGES) if packages else Verdict(CLEAN)


def _tags(node: Any) -> Iterator[str]:
    """Yields the tags that make Python objects. Each node is visited once, because aliases may repeat one a
    billion times."""
    visited: set[int] = set()
    waiting = [node]
    while waiting:
        item = waiting.pop()
        if id(item) in visited:
            continue
        visited.add(id(item))
        if item.tag.startswith((_PYTHON_TAG, "!!python", "!python")):
            yield item.tag.removeprefix("tag:yaml.org,2002:")
        if isinstance(item, yaml.SequenceNode):
            waiting.extend(item.value)
        elif isinstance(item, yaml.MappingNode):
            waiting.extend(part for pair in item.value for part in pair)
