"""The software of runs: requested environments and the package versions that were in use."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from environments.catalog import SYSTEM, find
from jobs.models import Artifact, AttemptNode, Run
from jobs.sources.installed_packages import installed_packages, normalized_name
from jobs.sources.package_records import package_versions
from tracking.comparison.differences.sheet import Facts, facts_table
from tracking.comparison.tables import ComparisonTable
from tracking.models import LoggedModelFile
from trainhub_launch.errors import SpecError
from trainhub_launch.spec import EnvironmentRef
from workspaces.stored_files import blob_cache, blobs

# A name, extras in brackets, and conditions up to a marker (;), a comment (#) or an address (@).
REQUIREMENT = re.compile(r"\s*([A-Za-z0-9][A-Za-z0-9._-]*)(?:\[[^\]]*\])?\s*([=<>!~][^;#@]*)?")
REQUIREMENTS = "requirements.txt"
MAX_BYTES = 256 * 1024
PYTHON = "python"
TOP = ("environment", PYTHON)


@dataclass(frozen=True)
class SoftwareTables:
    top: ComparisonTable
    packages: ComparisonTable
    variables: ComparisonTable


def compare_software(runs: Sequence[Run]) -> SoftwareTables:
    """Compares the runs; the first run is the base."""
    versions = {run.pk: _node_versions(run) for run in runs}
    return SoftwareTables(
        facts_table(runs, {run.pk: _main_facts(run, versions[run.pk]) for run in runs}, TOP),
        facts_table(runs, {run.pk: _packages(run, versions[run.pk]) for run in runs}),
        facts_table(runs, {run.pk: _variables(run) for run in runs}),
    )


def _main_facts(run: Run, versions: Facts) -> Facts:
    environment = run.spec.get("environment") or {}
    name, version = environment.get("name", ""), environment.get("version", "")
    facts = (
        {"environment": f"{name} {version}".strip() if name != SYSTEM else "the node's own Python"}
        if name
        else {}
    )
    # The environment `system` is the node's own Python, so its version is that of Python.
    python = versions.get(PYTHON, "") or (version if name == SYSTEM else "")
    return {**facts, **({"python": python} if python else {})}


def _packages(run: Run, versions: Facts) -> Facts:
    """Returns the packages from the most reliable source of each: found in the environment by a node,
    reported by nodes, installed by pip, required by a logged model, requested."""
    packages: dict[str, str] = {}
    # Later sources replace earlier ones, so the most reliable source is the last.
    for source in (
        _requirements(run),
        _model_requirements(run),
        installed_packages(run.pk, run.attempt),
        versions,
        package_versions(run),
    ):
        packages.update(source)
    return {name: version for name, version in packages.items() if name != PYTHON}


def _variables(run: Run) -> Facts:
    """Returns the run's variables; a secret is represented by its name."""
    variables = run.spec.get("environment_variables") or {}
    return {
        name: f"secret {value['secret']}" if isinstance(value, Mapping) else str(value)
        for name, value in variables.items()
    }


def _node_versions(run: Run) -> Facts:
    """Returns the versions that the nodes of the last attempt have agreed on; only attempts with several
    nodes report them."""
    parts = AttemptNode.objects.filter(attempt__run=run, attempt__number=run.attempt).order_by("node_rank")
    for fact in parts.values_list("fact", flat=True):
        versions = fact.get("versions") if isinstance(fact, dict) else None
        if versions:
            return {normalized_name(key): str(value) for key, value in versions.items()}
    return {}


def _requirements(run: Run) -> Facts:
    ref = run.spec.get("environment") or {}
    try:
        environment = find(EnvironmentRef(ref.get("name", SYSTEM), ref.get("version", "")), run.workspace)
    except SpecError:
        # A later version of the hub no longer has the environment of a run that an earlier one started.
        return {}
    return read_requirements("\n".join(environment.requirements))


def _model_requirements(run: Run) -> Facts:
    """Returns the versions in the requirements.txt that MLflow stores with each logged model."""
    artifacts = Artifact.objects.filter(run=run, path__endswith=REQUIREMENTS).order_by("-attempt", "path")
    model_files = LoggedModelFile.objects.filter(model__run=run, path__endswith=REQUIREMENTS).order_by(
        "-model__created_at"
    )
    rows = (candidates.values_list("sha256", flat=True).first() for candidates in (artifacts, model_files))
    sha256 = next((rows_found for rows_found in rows if rows_found is not None), None)
    if sha256 is None or not blobs.exists(sha256):
        return {}
    with blob_cache.local_path(sha256).open("rb") as file:
        return read_requirements(file.read(MAX_BYTES).decode(errors="replace"))


def read_requirements(text: str) -> Facts:
    """Returns the exact version of each package, or else its condition, or `any`."""
    requirements: dict[str, str] = {}
    for line in text.splitlines():
        match = REQUIREMENT.match(line)
        if match and not line.lstrip().startswith(("#", "-")):
            condition = "".join((match[2] or "").split())
            is_exact = condition.startswith("==") and "*" not in condition and "," not in condition
            requirements[normalized_name(match[1])] = (
                condition.lstrip("=") if is_exact else condition or "any"
            )
    return requirements
