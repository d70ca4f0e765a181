"""The final plan of an attempt: made once all nodes have reported their free ports, and stored."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from django.db.models import QuerySet

from jobs.models import Attempt, Member, Run
from trainhub_launch.plan import LaunchPlan
from trainhub_launch.planner import plan
from trainhub_launch.scheduler.placement import PlacedNode, Placement
from trainhub_launch.spec_reader import read_spec
from workspaces.database.compiled_queries import compiled
from workspaces.database.compiled_writes import update_rows

MAX_PORTS = 64


def load_placement(attempt: Attempt) -> Placement:
    return Placement(tuple(PlacedNode(**{**item, "gpus": tuple(item["gpus"])}) for item in attempt.placement))


def provisional_plan(run: Run, attempt: Attempt) -> LaunchPlan:
    """Returns the plan that nodes prepare for before their free ports are known."""
    return plan(read_spec(run.spec), load_placement(attempt))


def finalize_plan(run: Run, attempt: Attempt, ports: Mapping[str, Sequence[int]]) -> LaunchPlan:
    """Makes and stores the plan that will run. Raises SpecError if the spec does not fit the placement."""
    final = plan(read_spec(run.spec), load_placement(attempt), ports)
    attempt.plan = final.to_json()
    update_rows(Attempt, {"pk": attempt.pk}, plan=attempt.plan)
    _update_members(attempt, final)
    return final


def usable_ports(ports: Sequence[int]) -> list[int]:
    # Lower ports need root, and no honest node offers them.
    return [port for port in ports if 1024 <= port <= 65535][:MAX_PORTS]


@compiled
def _members(attempt_id: int) -> QuerySet[Member]:
    return Member.objects.filter(attempt_id=attempt_id)


def _update_members(attempt: Attempt, final: LaunchPlan) -> None:
    """Updates the fields that the final ports may have changed; the set of members stays the same."""
    process_by_rank = {process.rank: process for process in final.processes}
    for member in _members(attempt.pk):
        process = process_by_rank[member.rank]
        fields = (process.log_name, list(process.gpus), process.decides)
        if (member.log_name, member.gpus, member.decides) != fields:
            member.log_name, member.gpus, member.decides = fields
            member.save(update_fields=["log_name", "gpus", "decides"])
