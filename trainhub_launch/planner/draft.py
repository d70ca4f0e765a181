"""Makes the draft of a run: demand, placement and plan of a spec. The preview shows it, and all findings
judge it."""

from __future__ import annotations

from dataclasses import dataclass, replace

from trainhub_launch.errors import SpecError
from trainhub_launch.frameworks import framework_of
from trainhub_launch.frameworks.framework import Framework
from trainhub_launch.plan import LaunchPlan
from trainhub_launch.planner import contract_plan, with_user_variables
from trainhub_launch.scheduler.capacity import Demand, FreeNode
from trainhub_launch.scheduler.data_room import DataLists
from trainhub_launch.scheduler.placement import PlacedNode, Placement, Refusal, place, provisional
from trainhub_launch.scheduler.whole_nodes import with_all_gpus
from trainhub_launch.spec import RunSpec

IMAGINARY_CORES = 1


@dataclass(frozen=True)
class DraftPlan:
    """A spec with its placement and plan on the nodes of a cluster. `idle`: the placement if all `nodes` were
    free; `now`: the placement with the resources that are free at present. A `spec` that takes all GPUs of
    its nodes has the number that these nodes have.

    `contract`: the plan with only the variables that TrainHub sets, on the idle placement. If there is no
    such placement, imaginary nodes of the right size are used, so that a spec can be judged before any node
    is ready. None = the spec cannot be planned, and `error` is the reason. `plan`: the plan with the user's
    variables, for a preview. None = the present nodes cannot carry the run, or a variable is wrong, which a
    finding reports."""

    spec: RunSpec
    framework: Framework
    demand: Demand
    nodes: tuple[FreeNode, ...]
    idle: Placement | Refusal
    now: Placement | Refusal
    contract: LaunchPlan | None
    error: SpecError | None
    plan: LaunchPlan | None

    @property
    def chosen_nodes(self) -> tuple[FreeNode, ...]:
        """The nodes that the run would get, in the order of node ranks, without those that do not exist
        yet."""
        placement = self.idle if isinstance(self.now, Refusal) else self.now
        if isinstance(self.idle, Refusal) or isinstance(placement, Refusal):
            return ()
        by_name = {node.name: node for node in self.nodes if not node.is_coming}
        return tuple(by_name[placed.name] for placed in placement.nodes if placed.name in by_name)


def draft_plan(
    spec: RunSpec,
    nodes: tuple[FreeNode, ...],
    python: str = "",
    capabilities: frozenset[str] = frozenset(),
    data: DataLists = frozenset(),
) -> DraftPlan:
    """Returns the draft of `spec`. Never raises for wrong input of a user. Without `nodes` the plan uses
    imaginary ones. `python`: the Python that the nodes must have, "" = any; `capabilities`: those that its
    environment needs of nodes; `data`: the lists of files that each node downloads."""
    framework = framework_of(spec)
    capabilities |= spec.capabilities
    demand = replace(framework.demand(spec), python=python, capabilities=capabilities, data=data)
    demand = with_all_gpus(demand, nodes)
    spec = spec.with_gpus(demand.gpus)
    idle = provisional(demand, nodes)
    contract, error = _contract(spec, _imaginary(demand) if isinstance(idle, Refusal) else idle)
    # A cluster without nodes still gets a preview, but one that is too small must not: its plan could never
    # run.
    may_show = not nodes or isinstance(idle, Placement)
    return DraftPlan(
        spec=spec,
        framework=framework,
        demand=demand,
        nodes=nodes,
        idle=idle,
        now=place(demand, nodes),
        contract=contract,
        error=error,
        plan=_with_variables(spec, contract) if may_show and contract else None,
    )


def _contract(spec: RunSpec, placement: Placement) -> tuple[LaunchPlan | None, SpecError | None]:
    try:
        return contract_plan(spec, placement), None
    except SpecError as error:
        return None, error


def _with_variables(spec: RunSpec, contract: LaunchPlan) -> LaunchPlan | None:
    try:
        return with_user_variables(spec, contract)
    except SpecError:
        # `findings.variables` says the same, beside the field.
        return None


def _imaginary(demand: Demand) -> Placement:
    return Placement(
        tuple(
            PlacedNode(
                name=f"<node {rank}>",
                address=f"<node {rank}>",
                slots=demand.slots,
                cores=IMAGINARY_CORES,
                gpus=tuple(f"<GPU {index} of node {rank}>" for index in range(demand.gpus)),
                interface="<interface>",
            )
            for rank in range(demand.nodes)
        )
    )
