"""Writes the records of the SDK, `trainhub_sdk/records/`, from the OpenAPI document of the hub:
`.venv/bin/python packaging/make_sdk_records.py`. A test fails when they differ."""

from __future__ import annotations

import os
import sys
import textwrap
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
FOLDER = ROOT / "trainhub_sdk" / "records"
WIDTH = 106
# Module: what it holds, and the classes with the names of their schemas. A class follows those that it uses.
MODULES: dict[str, tuple[str, dict[str, str]]] = {
    "runs": (
        "Runs, and what belongs to one.",
        {
            "OtherRank": "OtherRank",
            "Cause": "Cause",
            "Finding": "Finding",
            "QueueStanding": "QueueStanding",
            "RunAttempt": "Attempt",
            "RemovedData": "RemovedData",
            "RunRecord": "RunDetail",
            "RunEvent": "Event",
            "RunLog": "Log",
            "OutputFile": "Output",
            "RunCheckpoint": "Checkpoint",
            "SpecNote": "SpecNote",
            "SpecExport": "SpecExport",
            "SpecImport": "SpecImport",
            "ExperimentSummary": "ExperimentSummary",
        },
    ),
    "registry": (
        "Registered models and their versions.",
        {"VersionFile": "File", "ModelVersionRecord": "Version", "ModelRecord": "Model"},
    ),
    "machines": ("Clusters, nodes and their GPUs.", {"Cluster": "Cluster", "Gpu": "Gpu", "Node": "Node"}),
    "environments": (
        "Environments and their versions.",
        {"Environment": "Environment", "EnvironmentVersion": "EnvironmentVersion"},
    ),
    "data": (
        "Datastores and datasets.",
        {
            "Datastore": "Datastore",
            "DatasetVersion": "DatasetVersion",
            "Dataset": "ListedDataset",
            "DatasetFile": "ListedFile",
        },
    ),
    "people": (
        "Who acts, where, and what was used.",
        {"Identity": "Me", "Workspace": "Workspace", "UsageTotal": "Line"},
    ),
}
NAMES = {schema: name for _, classes in MODULES.values() for name, schema in classes.items()}
TYPES = {"string": "str", "integer": "int", "number": "float", "boolean": "bool"}
DEFAULTS = {"str": '""', "int": "0", "float": "0.0", "bool": "False"}


def modules() -> dict[str, str]:
    """Returns the text of each module, by its name."""
    sys.path.insert(0, str(ROOT))
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "trainhub.settings")
    os.environ.setdefault("DATABASE_URL", "sqlite://:memory:")
    import django

    django.setup()
    from drf_spectacular.generators import SchemaGenerator

    document: Any = SchemaGenerator().get_schema(request=None, public=True)  # type: ignore[no-untyped-call]
    return make_modules(document["components"]["schemas"])


def make_modules(schemas: Mapping[str, Any]) -> dict[str, str]:
    return {module: "".join(_module(title, classes, schemas)) for module, (title, classes) in MODULES.items()}


def _module(title: str, classes: Mapping[str, str], schemas: Mapping[str, Any]) -> Iterator[str]:
    body = [_record(name, schemas[schema], schemas) for name, schema in classes.items()]
    text = "\n\n".join(body)
    yield f'"""{title} Written by packaging/make_sdk_records.py."""\n\n'
    yield "from __future__ import annotations\n\n"
    yield (
        "from dataclasses import dataclass, field\n"
        if "field(" in text
        else "from dataclasses import dataclass\n"
    )
    yield "from typing import Any\n\n" if "Any" in text else "\n"
    yield "from trainhub_sdk.records.record import Record\n\n\n"
    yield text


def _record(name: str, schema: Mapping[str, Any], schemas: Mapping[str, Any]) -> str:
    lines = ["@dataclass", f"class {name}(Record):"]
    for field, facts in schema["properties"].items():
        attribute = f"{field}_" if field in ("from", "for") else field
        kind, default = _type(facts, schemas)
        text = " ".join(str(facts.get("description", "")).split())
        lines += [f"    {attribute}: {kind} = {default}"]
        if text:
            lines += _docstring(text)
    return "\n".join(lines) + "\n"


def _docstring(text: str) -> list[str]:
    quoted = text.replace("\\", "\\\\").replace('"""', "'''")
    quoted = quoted + " " if quoted.endswith('"') else quoted
    one_line = f'    """{quoted}"""'
    if len(one_line) <= WIDTH:
        return [one_line]
    return textwrap.wrap(
        f'"""{quoted}"""', WIDTH, initial_indent="    ", subsequent_indent="    ", break_long_words=False
    )


def _type(facts: Mapping[str, Any], schemas: Mapping[str, Any]) -> tuple[str, str]:
    """Returns the annotation of a field and its default."""
    schema = _resolve(facts, schemas)
    if isinstance(schema, str):
        return f"{schema} | None", "None"
    kind = schema.get("type", "")
    if isinstance(kind, list):
        kinds = [TYPES[one] for one in kind if one in TYPES]
        return (f"{kinds[0]} | None", "None") if len(kinds) == 1 else ("Any", "None")
    if kind == "array":
        item = _resolve(schema.get("items", {}), schemas)
        inner = item if isinstance(item, str) else TYPES.get(str(item.get("type", "")), "dict[str, Any]")
        return f"list[{inner}]", "field(default_factory=list)"
    if kind == "object":
        if {"type": "null"} in [*facts.get("oneOf", ()), *facts.get("anyOf", ())]:
            return "dict[str, Any] | None", "None"
        return "dict[str, Any]", "field(default_factory=dict)"
    if kind in TYPES:
        return TYPES[kind], DEFAULTS[TYPES[kind]]
    return "Any", "None"


def _resolve(facts: Mapping[str, Any], schemas: Mapping[str, Any]) -> str | Mapping[str, Any]:
    """Returns the class that the schema names, or the schema itself."""
    for choice in (facts, *facts.get("allOf", ()), *facts.get("oneOf", ()), *facts.get("anyOf", ())):
        if "$ref" in choice:
            name = choice["$ref"].rpartition("/")[2]
            return NAMES[name] if name in NAMES else schemas[name]
    return facts


if __name__ == "__main__":
    for module, text in modules().items():
        FOLDER.joinpath(f"{module}.py").write_text(text)
