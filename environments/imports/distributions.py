"""Which distributions provide a module, from `distributions.toml`."""

from __future__ import annotations

import tomllib
from fnmatch import fnmatch
from functools import cache
from pathlib import Path

from packaging.utils import canonicalize_name

FILE = Path(__file__).with_name("distributions.toml")


@cache
def _table() -> dict[str, tuple[str, ...]]:
    modules = tomllib.loads(FILE.read_text())["modules"]
    return {module: tuple(distributions) for module, distributions in modules.items()}


@cache
def _patterns() -> tuple[str, ...]:
    return tuple(tomllib.loads(FILE.read_text())["others"]["distributions"])


@cache
def _listed() -> frozenset[str]:
    return frozenset(name for names in _table().values() for name in names)


def providers_of(module: str) -> tuple[str, ...] | None:
    """Returns the distributions that provide the dotted module, the one to recommend first; nothing for a
    module that is on no index; None for one that is not in the table."""
    parts = module.split(".")
    names = (".".join(parts[:length]) for length in range(len(parts), 0, -1))
    return next((_table()[name] for name in names if name in _table()), None)


def is_namespace(module: str) -> bool:
    """Returns whether several distributions share the top-level module (`google`), so that its name alone
    says nothing."""
    return module not in _table() and any(name.startswith(f"{module}.") for name in _table())


def is_known_distribution(name: str) -> bool:
    """Returns whether all modules of the distribution (its normalised name) are in the table."""
    return name in _listed() or any(fnmatch(name, pattern) for pattern in _patterns())


def distribution_for(module: str) -> str:
    """Returns the distribution that probably provides the module, "" for one that is on no index, or whose
    name none can have."""
    providers = providers_of(module)
    if providers is None:
        name = module.partition(".")[0].strip("_")
        return canonicalize_name(name) if name.isascii() else ""
    return providers[0] if providers else ""
