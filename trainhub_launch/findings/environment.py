"""The named environment of a spec: does it exist, and whose names are whose?"""

from __future__ import annotations

from collections.abc import Collection, Iterator

from trainhub_launch.findings.finding import Finding
from trainhub_launch.spec import RunSpec

RESERVED_PREFIXES = ("AzureML", "TrainHub-")
"""Names that only curated environments may bear."""


def reserved(name: str) -> str:
    """The sentence for a user's environment of this name, or "" where the name is free."""
    for prefix in RESERVED_PREFIXES:
        if name.casefold().startswith(prefix.casefold()):
            return (
                f"names that begin with {prefix!r} belong to curated environments; give a changed one a "
                "name of its own"
            )
    return ""


def environment(spec: RunSpec, names: Collection[str] | None) -> Iterator[Finding]:
    wanted = spec.environment.name
    if names is None or wanted == "system" or wanted in names:
        return
    known = f"there are: {', '.join(sorted({'system', *names}))}"
    if reserved(wanted):
        yield Finding(
            "error", "environment.name", f"{wanted} is not one of the curated environments here; {known}"
        )
    else:
        yield Finding("error", "environment.name", f"no environment is called {wanted!r}; {known}")
