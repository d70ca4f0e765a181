"""Compares launch plans: commands, processes, nodes and the environment variables of the ranks."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from jobs.models import Attempt, Run
from jobs.views import plan_comparison
from tracking.comparison.differences.sheet import Facts, facts_table
from tracking.comparison.tables import ComparisonTable
from trainhub_launch.plan import LaunchPlan
from trainhub_launch.printing import display_argv

ORDER = ("framework", "nodes", "processes", "GPUs", "command", "mpirun", "ports")
# Variables that differ for every run.
PER_RUN_VARIABLES = {
    "TRAINHUB_RUN_ID",
    "TRAINHUB_ATTEMPT",
    "TRAINHUB_TOKEN",
    "MLFLOW_RUN_ID",
    "MLFLOW_TRACKING_TOKEN",
}
MAX_VALUES = 4


@dataclass(frozen=True)
class PlanTables:
    """`without` are runs without a plan; `previews` are runs that never started, for which the preview's plan
    is shown."""

    facts: ComparisonTable
    variables: ComparisonTable
    without: tuple[Run, ...]
    previews: tuple[Run, ...]


def compare_plans(runs: Sequence[Run]) -> PlanTables:
    """Compares the launch plans of the runs; the first run is the base."""
    started = _started_plans(runs)
    previews = {
        run.pk: LaunchPlan.from_json(run.preview) for run in runs if run.pk not in started and run.preview
    }
    plans = {**previews, **started}
    return PlanTables(
        facts_table(runs, {pk: plan_facts(plan) for pk, plan in plans.items()}, ORDER),
        facts_table(runs, {pk: rank_variables(plan) for pk, plan in plans.items()}),
        tuple(run for run in runs if run.pk not in plans),
        tuple(run for run in runs if run.pk in previews),
    )


def plan_facts(plan: LaunchPlan) -> Facts:
    rows = plan_comparison.rows(plan)
    gpus = sorted({len(row.process.gpus) for row in rows})
    facts = {
        "framework": plan.framework,
        "nodes": ", ".join(f"{command.node} ({len(command.processes)})" for command in plan.commands),
        "processes": str(len(rows)),
        "GPUs": f"{sum(len(row.process.gpus) for row in rows)}, {' or '.join(map(str, gpus))} a process"
        if any(gpus)
        else "none",
        "command": _summary(" ".join(display_argv(row.process)) for row in rows),
        "mpirun": " ".join(next((command.launcher for command in plan.commands if command.launcher), ())),
        "ports": ", ".join(f"{name} {port}" for name, port in sorted(plan.ports.items())),
    }
    return {name: value for name, value in facts.items() if value}


def rank_variables(plan: LaunchPlan) -> Facts:
    """Returns the variables over all ranks; a secret is represented by its name."""
    rows = [dict(row.env) for row in plan_comparison.rows(plan)]
    names = {name for row in rows for name in row} - PER_RUN_VARIABLES
    return {name: _summary(row[name] for row in rows if name in row) for name in names}


def _summary(values: Iterable[str]) -> str:
    """Returns the distinct values, at most MAX_VALUES of them."""
    counts = Counter(values)
    visible = list(counts)[:MAX_VALUES]
    rest = [f"{len(counts) - len(visible)} more"] if len(counts) > len(visible) else []
    return " | ".join([*visible, *rest])


def _started_plans(runs: Sequence[Run]) -> dict[str, LaunchPlan]:
    """Returns the plans of the runs' last attempts, if those have started."""
    attempts = {run.pk: run.attempt for run in runs}
    rows = Attempt.objects.filter(run__in=attempts, plan__isnull=False).values_list(
        "run_id", "number", "plan"
    )
    return {pk: LaunchPlan.from_json(plan) for pk, number, plan in rows if plan and number == attempts[pk]}
