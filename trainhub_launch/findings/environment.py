"""Checks that the environment named in a spec exists, and which names are reserved for curated
environments."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from trainhub_launch.findings.finding import Finding
from trainhub_launch.spec import RunSpec

# Only names of curated environments may begin with these, in capitals or not.
RESERVED_PREFIXES = ("AzureML", "TrainHub")
# Files at the top of a source folder that list packages: those of which the hub makes an environment, and
# others.
_SOURCES = frozenset(
    {
        "requirements.txt",
        "environment.yml",
        "environment.yaml",
        "conda.yml",
        "conda.yaml",
        "pylock.toml",
    }
)
_PACKAGE_LISTS = _SOURCES | {"Pipfile"}
_MAKE = "make an environment from the file (Environments, New environment), and choose it"
_CHOOSE = "write them as requirements, make an environment from these, and choose it"


def reserved(name: str) -> str:
    """Returns why users may not create an environment of this name, or "" if they may."""
    for prefix in RESERVED_PREFIXES:
        if name.casefold().startswith(prefix.casefold()):
            return (
                f"names that begin with {prefix!r} belong to curated environments; give a changed one a "
                "name of its own"
            )
    return ""


def environment_findings(
    spec: RunSpec, names: Collection[str] | None, paths: Collection[str] | None
) -> Iterator[Finding]:
    name = spec.environment.name
    for path in sorted(_PACKAGE_LISTS.intersection(paths or ())):
        remedy = _MAKE if path in _SOURCES else _CHOOSE
        yield Finding(
            "hint", "environment.name", f"the packages of {path} are not installed by themselves: {remedy}"
        )
    if names is None or name == "system" or name in names:
        return
    available = f"there are: {', '.join(sorted({'system', *names}))}"
    if reserved(name):
        yield Finding(
            "error", "environment.name", f"{name} is not one of the curated environments here; {available}"
        )
    else:
        yield Finding("error", "environment.name", f"no environment is called {name!r}; {available}")
