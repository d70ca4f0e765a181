"""The form that makes the change with which a failed run would have had what it lacked."""

from __future__ import annotations

import re
from dataclasses import dataclass

from environments.curated import BY_NAME
from environments.imports.distributions import distribution_for
from jobs.causes.cause import Cause
from jobs.environment_findings.remedies import change_link
from jobs.models import Run
from trainhub_launch.scheduler.capacity import words
from trainhub_launch.spec import EnvironmentRef

_MISSING = re.compile(r"No module named '?([A-Za-z_][\w.]*)")
# Kind of failure -> what its message contains, and the requirement that mends it.
_REQUIREMENTS = {
    "unmatched_builds": (
        re.compile(r"NumPy 1\.x|numpy\.\w+ size changed|numpy\.core\.multiarray"),
        "numpy<2",
    ),
    "missing_mpi": (re.compile(r"mpi4py"), "mpi4py"),
    "trainer_argument_gone": (re.compile("."), "transformers<5"),
    "keras_per_replica": (re.compile("."), "tf-keras"),
}


@dataclass(frozen=True)
class FailureRemedy:
    """`action`: what the page at `link` does, such as "Add pandas"."""

    action: str
    link: str


def failure_remedy(run: Run, cause: Cause) -> FailureRemedy | None:
    """Returns the prefilled form of the run's environment, with the requirement that the failure names if it
    names one; None if the failure does not concern the environment, or no version of it can be made here."""
    if cause.link != "environments":
        return None
    environment = run.spec.get("environment", {})
    ref = EnvironmentRef(environment.get("name", ""), environment.get("version", ""))
    requirements = _requirements(cause)
    link = change_link(run.workspace, ref, requirements)
    if not link:
        return None
    if requirements:
        verb = "Pin" if any("<" in requirement for requirement in requirements) else "Add"
        return FailureRemedy(f"{verb} {words(requirements)}", link)
    return FailureRemedy(f"Copy and edit {ref.name}" if ref.name in BY_NAME else f"Edit {ref.name}", link)


def _requirements(cause: Cause) -> list[str]:
    text = f"{cause.exception}\n{cause.quote}"
    if cause.kind == "missing_module":
        missing = _MISSING.search(cause.exception) or _MISSING.search(cause.quote)
        distribution = distribution_for(missing[1]) if missing else ""
        return [distribution] if distribution else []
    pattern, requirement = _REQUIREMENTS.get(cause.kind, (None, ""))
    return [requirement] if pattern is not None and pattern.search(text) else []
