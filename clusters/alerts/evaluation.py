"""Applies all rules to the facts, without side effects. The result contains the cases that match and the
scopes that cannot be decided."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial

from clusters.alerts.facts import GpuFacts, LeaseFacts, NodeFacts, RuleMatch, RuleResult
from clusters.alerts.limits import AlertLimits, LimitTable
from clusters.alerts.node_rules import RunFacts
from clusters.alerts.rules import GPU_RULES, NODE_RULES, RUN_RULES, AlertRule, GpuRule


@dataclass(frozen=True)
class AlertCase:
    """A match of a rule for a subject; an open Alert stands for one case. `scope` names the rule and its
    subject, `key` the case."""

    rule: AlertRule
    scope: str
    subject: str
    match: RuleMatch
    node: int | None = None
    lease: LeaseFacts | None = None
    per_holder: bool = False

    @property
    def key(self) -> str:
        parts = [self.scope, self.lease.holder if self.per_holder and self.lease else "", self.match.subkey]
        return ":".join(part for part in parts if part)

    @property
    def severity(self) -> str:
        return self.match.severity or self.rule.severity


@dataclass(frozen=True)
class RuleEvaluation:
    """The result of all rules. `unknown_scopes`: the facts do not decide these. `silent_nodes` and
    `unreadable_nodes`: nodes without current facts, or without facts about their GPUs. `holders`: GPU UUID ->
    holder of its lease, which the hub knows for silent nodes as well. `limits`: those that were applied;
    `clusters`: the cluster of each node, by its id. `failures`: the first error of each rule that failed, by
    its kind; its scopes count as unknown."""

    cases: dict[str, AlertCase] = field(default_factory=dict)
    unknown_scopes: frozenset[str] = frozenset()
    silent_nodes: frozenset[int] = frozenset()
    unreadable_nodes: frozenset[int] = frozenset()
    holders: dict[str, str] = field(default_factory=dict)
    limits: LimitTable = field(default_factory=lambda: LimitTable(AlertLimits()))
    clusters: dict[int, int | None] = field(default_factory=dict)
    failures: dict[str, Exception] = field(default_factory=dict)

    def limits_of(self, node_id: int | None) -> AlertLimits:
        """Returns the limits that hold for the node."""
        return self.limits.of(None if node_id is None else self.clusters.get(node_id))


def evaluate_rules(nodes: Sequence[NodeFacts], limits: LimitTable) -> RuleEvaluation:
    cases: dict[str, AlertCase] = {}
    unknown_scopes: set[str] = set()
    failures: dict[str, Exception] = {}
    for rule, scope, subject, node, lease, condition in _conditions(nodes, limits):
        matches = _check(rule.kind, condition, failures)
        if matches is None:
            unknown_scopes.add(scope)
            continue
        per_holder = isinstance(rule, GpuRule) and rule.per_holder
        for match in matches:
            node_id = match.node if match.node is not None else node
            case = AlertCase(rule, scope, subject, match, node_id, lease, per_holder)
            cases[case.key] = case
    return RuleEvaluation(
        cases,
        frozenset(unknown_scopes),
        silent_nodes=frozenset(node.pk for node in nodes if not node.is_reporting),
        unreadable_nodes=frozenset(node.pk for node in nodes if not node.is_reporting or node.nvml),
        holders={gpu.uuid: gpu.lease.holder if gpu.lease else "" for node in nodes for gpu in node.gpus},
        limits=limits,
        clusters={node.pk: node.cluster for node in nodes},
        failures=failures,
    )


_RuleCondition = tuple[AlertRule, str, str, int | None, LeaseFacts | None, Callable[[], RuleResult]]


def _conditions(nodes: Sequence[NodeFacts], limit_table: LimitTable) -> Iterator[_RuleCondition]:
    for node in nodes:
        limits = limit_table.of(node.cluster)
        yield from _node_conditions(node, limits)
        if node.is_reporting:
            # GPUs of a silent node are skipped: their last numbers say nothing about now.
            for gpu in node.gpus:
                yield from _gpu_conditions(gpu, node, limits)
    for run in _runs(nodes):
        limits = limit_table.of(run.cluster)
        for rule in RUN_RULES:
            if rule.is_enabled(limits):
                subject = run.lease.holder
                yield (
                    rule,
                    f"{rule.kind}:{subject}",
                    subject,
                    None,
                    run.lease,
                    partial(rule.condition, run, limits),
                )


def _node_conditions(node: NodeFacts, limits: AlertLimits) -> Iterator[_RuleCondition]:
    for rule in NODE_RULES:
        if rule.is_enabled(limits) and (node.is_reporting or rule.applies_to_silent):
            yield rule, f"{rule.kind}:{node.pk}", "", node.pk, None, partial(rule.condition, node, limits)


def _gpu_conditions(gpu: GpuFacts, node: NodeFacts, limits: AlertLimits) -> Iterator[_RuleCondition]:
    for rule in GPU_RULES:
        if rule.is_enabled(limits):
            condition = partial(rule.condition, gpu, node, limits)
            yield rule, f"{rule.kind}:{gpu.uuid}", gpu.uuid, node.pk, gpu.lease, condition


def _check(kind: str, condition: Callable[[], RuleResult], failures: dict[str, Exception]) -> RuleResult:
    """Returns the result of one rule. A rule that fails over odd facts must not silence all others: its error
    goes into `failures`, and its result is unknown."""
    try:
        return condition()
    except Exception as error:
        failures.setdefault(kind, error)
        return None


def _runs(nodes: Sequence[NodeFacts]) -> list[RunFacts]:
    """Returns the holders of leases. GPUs of a silent node count, but without numbers."""
    gpus: dict[str, list[tuple[NodeFacts, GpuFacts]]] = defaultdict(list)
    places: dict[str, dict[int, NodeFacts]] = defaultdict(dict)
    leases: dict[str, LeaseFacts] = {}
    for node in nodes:
        for lease in (*node.leases, *(gpu.lease for gpu in node.gpus if gpu.lease is not None)):
            leases[lease.holder] = lease
            places[lease.holder][node.pk] = node
        for gpu in node.gpus:
            if gpu.lease is not None:
                known = gpu if node.is_reporting else GpuFacts(gpu.uuid, gpu.index)
                gpus[gpu.lease.holder].append((node, known))
    return [RunFacts(lease, list(places[holder].values()), gpus[holder]) for holder, lease in leases.items()]
