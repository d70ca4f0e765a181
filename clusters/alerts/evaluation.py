"""Every rule applied to one picture: which cases hold, and of which nothing is known. Pure."""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from clusters.alerts.facts import Finding, Found, GpuFacts, Held, NodeFacts
from clusters.alerts.limits import Limits
from clusters.alerts.node_rules import RunFacts
from clusters.alerts.rules import GPU_RULES, NODE_RULES, RUN_RULES, GpuRule, NodeRule, Rule

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Case:
    """A finding about something: what an open Alert is about. `scope` is the rule and the thing, `key` the
    case itself."""

    rule: Rule
    scope: str
    subject: str
    finding: Finding
    node: int | None = None
    held: Held | None = None
    by_holder: bool = False

    @property
    def key(self) -> str:
        parts = [self.scope, self.held.holder if self.by_holder and self.held else "", self.finding.also]
        return ":".join(part for part in parts if part)

    @property
    def severity(self) -> str:
        return self.finding.severity or self.rule.severity


@dataclass(frozen=True)
class Judged:
    """`unknown`: scopes of which the facts do not tell. `unheard` and `unread`: nodes of which nothing, or
    nothing about their GPUs, is known. `holders`: who holds each GPU, which the hub knows of any node."""

    cases: dict[str, Case] = field(default_factory=dict)
    unknown: frozenset[str] = frozenset()
    unheard: frozenset[int] = frozenset()
    unread: frozenset[int] = frozenset()
    holders: dict[str, str] = field(default_factory=dict)
    is_on: frozenset[str] = frozenset()


def judge(nodes: Sequence[NodeFacts], limits: Limits) -> Judged:
    cases: dict[str, Case] = {}
    unknown: set[str] = set()
    for rule, scope, subject, node, held, found in _all(nodes, limits):
        if found is None:
            unknown.add(scope)
            continue
        by_holder = isinstance(rule, GpuRule) and rule.by_holder
        for finding in found:
            where = finding.node if finding.node is not None else node
            case = Case(rule, scope, subject, finding, where, held, by_holder)
            cases[case.key] = case
    return Judged(
        cases,
        frozenset(unknown),
        unheard=frozenset(node.pk for node in nodes if not node.is_heard),
        unread=frozenset(node.pk for node in nodes if not node.is_heard or node.nvml),
        holders={gpu.uuid: gpu.held.holder if gpu.held else "" for node in nodes for gpu in node.gpus},
        is_on=frozenset(rule.kind for rule in (*GPU_RULES, *NODE_RULES, *RUN_RULES) if rule.is_on(limits)),
    )


_complained: set[str] = set()
Asked = tuple[Rule, str, str, int | None, Held | None, Found]


def _all(nodes: Sequence[NodeFacts], limits: Limits) -> Iterator[Asked]:
    gpu_rules = [rule for rule in GPU_RULES if rule.is_on(limits)]
    node_rules = [rule for rule in NODE_RULES if rule.is_on(limits)]
    for node in nodes:
        yield from _of_node(node, node_rules, limits)
        if node.is_heard:
            for gpu in node.gpus:
                yield from _of_gpu(gpu, node, gpu_rules, limits)
    for run in _runs(nodes):
        for rule in RUN_RULES:
            if rule.is_on(limits):
                subject = run.held.holder
                yield (
                    rule,
                    f"{rule.kind}:{subject}",
                    subject,
                    None,
                    run.held,
                    _found(rule.kind, rule.condition, run, limits),
                )


def _of_node(node: NodeFacts, rules: Sequence[NodeRule], limits: Limits) -> Iterator[Asked]:
    for rule in rules:
        if node.is_heard or rule.of_silent:
            yield (
                rule,
                f"{rule.kind}:{node.pk}",
                "",
                node.pk,
                None,
                _found(rule.kind, rule.condition, node, limits),
            )


def _of_gpu(gpu: GpuFacts, node: NodeFacts, rules: Sequence[GpuRule], limits: Limits) -> Iterator[Asked]:
    for rule in rules:
        yield (
            rule,
            f"{rule.kind}:{gpu.uuid}",
            gpu.uuid,
            node.pk,
            gpu.held,
            _found(rule.kind, rule.condition, gpu, node, limits),
        )


def _found(kind: str, condition: Callable[..., Found], *facts: object) -> Found:
    """One rule that fails over odd facts must not silence all others: then nothing is known."""
    try:
        return condition(*facts)
    except Exception:
        if kind not in _complained:
            _complained.add(kind)
            log.exception("The rule %s failed; it is told this once", kind)
        return None


def _runs(nodes: Sequence[NodeFacts]) -> list[RunFacts]:
    """Holders with all their GPUs. Of a node that is not heard, a GPU counts as one without numbers."""
    gpus: dict[str, list[tuple[NodeFacts, GpuFacts]]] = defaultdict(list)
    holders: dict[str, Held] = {}
    for node in nodes:
        for gpu in node.gpus:
            if gpu.held is not None:
                holders[gpu.held.holder] = gpu.held
                gpus[gpu.held.holder].append((node, gpu if node.is_heard else GpuFacts(gpu.uuid, gpu.index)))
    return [RunFacts(held, gpus[holder]) for holder, held in holders.items() if len(gpus[holder]) > 1]
