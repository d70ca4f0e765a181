"""The software of runs: what was asked for, and the versions that are known to have been there."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from jobs.causes.reasons import BUILD_LOG
from jobs.environments import CURATED, SYSTEM
from jobs.logs import log_store
from jobs.models import Artifact, AttemptNode, Run
from tracking.comparison.differences.sheet import Facts, sheet
from tracking.comparison.tables import Table
from tracking.models import LoggedModelFile
from workspaces.stored_files import blobs

INSTALLED = re.compile(rb"^Successfully installed (.+)$", re.MULTILINE)
DISTRIBUTION = re.compile(r"([A-Za-z0-9][A-Za-z0-9._-]*?)-(\d[^\s-]*)\Z")
REQUIREMENT = re.compile(r"\s*([A-Za-z0-9][A-Za-z0-9._-]*)(?:\[[^\]]*\])?\s*([=<>!~][^;#@]*)?")
REQUIREMENTS = "requirements.txt"
MOST_BYTES = 256 * 1024
PYTHON = "python"
TOP = ("environment", PYTHON)
LONGEST_WORD = 200


@dataclass(frozen=True)
class Software:
    top: Table
    packages: Table
    variables: Table


def compare(runs: Sequence[Run]) -> Software:
    """The first run is the base."""
    told = {run.pk: _told_by_nodes(run) for run in runs}
    return Software(
        sheet(runs, {run.pk: _top(run, told[run.pk]) for run in runs}, TOP),
        sheet(runs, {run.pk: _packages(run, told[run.pk]) for run in runs}),
        sheet(runs, {run.pk: _variables(run) for run in runs}),
    )


def _top(run: Run, told: Facts) -> Facts:
    asked = run.spec.get("environment") or {}
    name, version = asked.get("name", ""), asked.get("version", "")
    facts = (
        {"environment": f"{name} {version}".strip() if name != SYSTEM else "the node's own Python"}
        if name
        else {}
    )
    python = told.get(PYTHON, "") or (version if name == SYSTEM else "")
    return {**facts, **({"python": python} if python else {})}


def _packages(run: Run, told: Facts) -> Facts:
    """The most certain word about each: what its nodes found, what pip installed, what its model says, what
    was asked for."""
    found: dict[str, str] = {}
    for source in (_asked_for(run), _of_logged_files(run), _installed(run), told):
        found.update(source)
    return {name: version for name, version in found.items() if name != PYTHON}


def _variables(run: Run) -> Facts:
    """A secret is shown by its name alone."""
    given = run.spec.get("environment_variables") or {}
    return {
        name: f"secret {value['secret']}" if isinstance(value, Mapping) else str(value)
        for name, value in given.items()
    }


def _told_by_nodes(run: Run) -> Facts:
    """What all nodes of the last attempt agreed on; told where there were several."""
    parts = AttemptNode.objects.filter(attempt__run=run, attempt__number=run.attempt).order_by("node_rank")
    for fact in parts.values_list("fact", flat=True):
        versions = fact.get("versions") if isinstance(fact, dict) else None
        if versions:
            return {_name(key): str(value) for key, value in versions.items()}
    return {}


def _installed(run: Run) -> Facts:
    """Where the run's own attempt built the environment, its log names every package."""
    try:
        data = log_store.read(run.pk, run.attempt, BUILD_LOG, 0, MOST_BYTES) if run.attempt else b""
    except log_store.BadName:
        return {}
    words = [word for line in INSTALLED.findall(data) for word in line.decode(errors="replace").split()]
    matches = [DISTRIBUTION.match(word) for word in words if len(word) < LONGEST_WORD]
    return {_name(match[1]): match[2] for match in matches if match}


def _asked_for(run: Run) -> Facts:
    name = (run.spec.get("environment") or {}).get("name", "")
    return read_requirements(
        "\n".join(line for item in CURATED if item.name == name for line in item.requirements)
    )


def _of_logged_files(run: Run) -> Facts:
    """MLflow puts a requirements.txt beside each model that it logs."""
    named = Artifact.objects.filter(run=run, path__endswith=REQUIREMENTS).order_by("-attempt", "path")
    of_models = LoggedModelFile.objects.filter(model__run=run, path__endswith=REQUIREMENTS).order_by(
        "-model__created_at"
    )
    rows = (found.values_list("sha256", flat=True).first() for found in (named, of_models))
    sha256 = next((found for found in rows if found is not None), None)
    if sha256 is None or not blobs.exists(sha256):
        return {}
    with blobs.path(sha256).open("rb") as file:
        return read_requirements(file.read(MOST_BYTES).decode(errors="replace"))


def read_requirements(text: str) -> Facts:
    """Name -> version where it is exact, else the condition as it stands; `any` without one."""
    found: dict[str, str] = {}
    for line in text.splitlines():
        match = REQUIREMENT.match(line)
        if match and not line.lstrip().startswith(("#", "-")):
            condition = "".join((match[2] or "").split())
            exact = condition.startswith("==") and "*" not in condition and "," not in condition
            found[_name(match[1])] = condition.lstrip("=") if exact else condition or "any"
    return found


def _name(package: str) -> str:
    """As the package index compares names."""
    return re.sub(r"[-_.]+", "-", package).lower()
