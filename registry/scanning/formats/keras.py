"""Configurations of Keras: which classes and functions loading the model makes or calls."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from typing import Any

from registry.scanning.formats.imports import Name, judge_imports
from registry.scanning.formats.source import Source
from registry.scanning.verdict_names import CLEAN, CONTAINS_CODE, DANGEROUS, NOT_SCANNED, Verdict, combine

MAX_CONFIG_BYTES = 64 * 2**20
LAMBDA = "keras Lambda layer"
_OWN = (
    "keras",
    "keras_hub",
    "keras_nlp",
    "keras_cv",
    "tf_keras",
    "tensorflow.keras",
    "tensorflow.python.keras",
)
_LAMBDA_TEXT = re.compile(rb'"class_name":\s*"(?:Lambda|__lambda__|TorchModuleWrapper)"')
_MODULE_TEXT = re.compile(rb'"module":\s*"([\w.]{1,200})",\s*"class_name":\s*"([\w.]{1,200})"')
# Layers that bring code along: Python bytecode, or a pickle of PyTorch or JAX.
CODE_CLASSES = frozenset({"Lambda", "__lambda__", "TorchModuleWrapper", "JaxLayer", "FlaxLayer"})
BRINGS_CODE = "It contains Python code, which runs when the model is used."
# Parts of Keras whose classes only compute. Others fetch files or load models.
_PLAIN_PARTS = frozenset(
    {
        "layers",
        "models",
        "initializers",
        "regularizers",
        "constraints",
        "optimizers",
        "losses",
        "metrics",
        "activations",
        "dtype_policies",
        "engine",
        "random",
        "schedules",
        "quantizers",
    }
)
_FETCHING = frozenset(
    {"get_file", "load_model", "load_weights", "func_load", "model_from_json", "deserialize_keras_object"}
)
FETCHES = "Loading it fetches or loads other files."
NAMES_CODE = "Loading it uses classes or functions that are not Keras' own."


def scan_config(source: Source) -> Verdict:
    """Judge the `config.json` of a `.keras` file, or a model as `to_json` writes it."""
    config = json.loads(source.whole(MAX_CONFIG_BYTES))
    return combine(("", verdict) for verdict in _verdicts(config))


def is_config(data: object) -> bool:
    """Whether this JSON describes a Keras model."""
    return isinstance(data, dict) and "class_name" in data and "config" in data


def judge_config(config: object) -> Verdict:
    return combine(("", verdict) for verdict in _verdicts(config))


def scan_hdf5(source: Source) -> Verdict:
    """Searches an HDF5 file for a Keras configuration that contains code. It is never clean, as HDF5 itself
    is not read."""
    rest, names, has_code = b"", set[Name](), False
    with source.open() as file:
        while chunk := file.read(1024 * 1024):
            window = rest + chunk
            has_code = has_code or _LAMBDA_TEXT.search(window) is not None
            names |= {(module.decode(), name.decode()) for module, name in _MODULE_TEXT.findall(window)}
            # A match may begin in one piece and end in the next; names of at most 200 bytes leave it below
            # 1000.
            rest = chunk[-1000:]
    parts = [("", Verdict(CONTAINS_CODE, (LAMBDA,), BRINGS_CODE))] if has_code else []
    parts += [("", verdict) for verdict in _named(item for item in names if not _is_plain(item[0]))]
    if not parts:
        parts = [
            (
                "",
                Verdict(
                    NOT_SCANNED,
                    note="The scanner does not read HDF5; save it as .keras or safetensors instead.",
                ),
            )
        ]
    return combine(parts)


def _verdicts(config: object) -> Iterator[Verdict]:
    yield Verdict(CLEAN)
    names: set[Name] = set()
    for item in walk(config):
        name = item.get("class_name")
        if not isinstance(name, str) or "config" not in item:
            continue
        if name in CODE_CLASSES:
            yield Verdict(CONTAINS_CODE, (LAMBDA if name != "TorchModuleWrapper" else name,), BRINGS_CODE)
        module = item.get("module")
        # Of functions `config` holds the name, and `class_name` only says that it is one.
        if name in ("function", "builtin"):
            target = item["config"]
            names.add(
                (module if isinstance(module, str) else "keras", target if isinstance(target, str) else name)
            )
        elif isinstance(module, str):
            names.add((module, name))
        # Classes that somebody registered with Keras are called PACKAGE>CLASS.
        registered = item.get("registered_name")
        if (
            module is None
            and isinstance(registered, str)
            and ">" in registered
            and not registered.startswith("keras")
        ):
            yield Verdict(CONTAINS_CODE, (registered,), NAMES_CODE)
    yield from _named(item for item in names if not _is_plain(item[0]))


def walk(config: object) -> Iterator[dict[str, Any]]:
    """Yields every mapping in `config` once. It does not recurse, as the depth is untrusted, and visits each
    object once, as aliases of YAML may repeat one a billion times."""
    waiting = [config]
    visited: set[int] = set()
    while waiting:
        item = waiting.pop()
        if not isinstance(item, dict | list) or id(item) in visited:
            continue
        visited.add(id(item))
        if isinstance(item, dict):
            yield item
        waiting.extend(item.values() if isinstance(item, dict) else item)


def _named(names: Iterable[Name]) -> Iterator[Verdict]:
    for item in names:
        verdict = (
            Verdict(DANGEROUS, (".".join(item),), FETCHES) if item[1] in _FETCHING else judge_imports([item])
        )
        yield verdict if verdict.verdict != CLEAN else Verdict(CONTAINS_CODE, (".".join(item),), NAMES_CODE)


def _is_plain(module: str) -> bool:
    """Whether `module` is a part of Keras itself whose classes only compute."""
    own = next((own for own in _OWN if module == own or module.startswith(f"{own}.")), None)
    if own is None:
        return False
    return module == own or not _PLAIN_PARTS.isdisjoint(module.removeprefix(own).split("."))
