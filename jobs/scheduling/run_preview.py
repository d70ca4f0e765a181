"""Previews a spec: the plan on a provisional placement, and everything that is wrong or doubtful about it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from django.db.models import QuerySet

from clusters.backends.contract import OutsideScheduler, Request
from clusters.gpus.gpu_models import gpu_names
from clusters.kinds import backend_of
from clusters.models import Cluster, Node
from clusters.visibility import cluster_named, clusters_of
from datastores.run_inputs import input_capabilities, with_choices
from environments.catalog import environment_names, needed_capabilities
from environments.succession import environment_notice
from jobs.attempts.attempt_end import MAX_PREEMPTIONS
from jobs.attempts.quarantine import quarantined_leases
from jobs.environment_findings.all_findings import package_findings
from jobs.environment_findings.node_glibc import glibc_findings
from jobs.queues.data_needs import DataNeeds
from jobs.queues.demands import longest_s
from jobs.quotas import disk_quota
from jobs.quotas.quota_check import QuotaBook
from jobs.scheduling.data_findings import data_findings
from jobs.scheduling.default_cluster import with_cluster
from jobs.scheduling.interpreters import check_interpreters, nodes_python
from jobs.sources import examples, git_sources
from jobs.sources.snapshots import snapshots_of
from trainhub_launch.errors import SpecError
from trainhub_launch.findings import Finding
from trainhub_launch.findings.scaling_up import scaling_up
from trainhub_launch.plan import LaunchPlan
from trainhub_launch.planner.draft import DraftPlan, draft_plan
from trainhub_launch.planner.validation import sort_findings, validate
from trainhub_launch.scheduler.capacity import Demand, FreeNode
from trainhub_launch.scheduler.quotas import quota_refusal, waiting_refusal
from trainhub_launch.spec import ExampleSource, GitSource, RunSpec
from workspaces.access import Principal, may_operate
from workspaces.database.compiled_queries import compiled
from workspaces.models import Workspace
from workspaces.secrets import store as secrets
from workspaces.states import Role

# Names of secrets that a finding lists.
MAX_SECRET_NAMES = 20


@dataclass(frozen=True)
class Preview:
    """The result of a preview. `plan` is None if the spec cannot be laid out; the findings explain why.
    `findings`: the worst ones first. `job_script`: what is submitted to the cluster's own scheduler, "" if it
    has none. `scheduler_name`: what people call that."""

    plan: LaunchPlan | None
    findings: tuple[Finding, ...]
    job_script: str = ""
    scheduler_name: str = ""

    @property
    def errors(self) -> tuple[Finding, ...]:
        return tuple(finding for finding in self.findings if finding.level == "error")


def preview(spec: RunSpec, principal: Principal, max_age_s: float = 0.0) -> Preview:
    """Returns the plan that the spec would get at present, on the default cluster if it names none. Reports
    every problem of the spec as a finding and raises nothing for it. `max_age_s`: what is read about nodes
    may be so old."""
    spec = with_choices(with_cluster(spec, principal), principal.workspace)
    cluster = cluster_named(spec.resources.cluster, principal.workspace)
    # Leases of attempts that are over but not confirmed do not count as free, but as what comes free.
    nodes = _nodes(cluster, principal, max_age_s)
    nodes = _without_harmless_windows(spec, nodes, principal)
    draft = draft_plan(
        spec,
        nodes,
        nodes_python(spec, nodes, principal.workspace),
        needed_capabilities(spec.environment, principal.workspace)
        | input_capabilities(spec, principal.workspace),
        DataNeeds().lists_of(spec, principal.workspace),
    )
    # With the number of GPUs that all GPUs of a node are there.
    spec = draft.spec
    paths, findings = _source(spec, principal)
    findings += _cluster(spec, cluster, principal)
    findings += _priority(spec, principal)
    findings += _quotas(draft.demand, principal)
    findings += _disk(principal)
    findings += _secrets(spec, principal)
    findings += _environment(spec, principal.workspace)
    findings += data_findings(spec, principal.workspace, draft.chosen_nodes)
    findings += check_interpreters(spec, draft.idle, nodes, principal.workspace)
    findings += glibc_findings(draft.demand, nodes)
    findings += package_findings(spec, principal, draft.chosen_nodes)
    findings += _scaling_up(draft, principal, {cluster.name: nodes} if cluster else {})
    outside = _outside_hints(cluster, draft)
    findings += outside
    findings += [
        item
        for item in validate(draft, paths=paths, environments=environment_names(principal.workspace))
        # A cluster that is not there has no ready nodes, and one with a queue of its own needs none.
        if item.field != "resources.cluster"
        or (cluster is not None and (not outside or item.level != "hint"))
    ]
    scheduler = None if cluster is None else backend_of(cluster).scheduler
    shown = Preview(plan=draft.plan, findings=sort_findings(findings))
    if cluster is None or scheduler is None or not draft.plan:
        return shown
    script = _job_script(scheduler, draft, cluster, principal)
    return replace(shown, job_script=script, scheduler_name=scheduler.name)


def _job_script(scheduler: OutsideScheduler, draft: DraftPlan, cluster: Cluster, principal: Principal) -> str:
    return scheduler.job_text(
        Request(
            cluster=cluster,
            holder="",
            attempt=1,
            label="run",
            demand=replace(draft.demand, limit_s=longest_s(draft.spec)),
            workspace=principal.workspace,
            person=principal.user,
            grace_s=draft.spec.limits.grace_s,
        )
    )


def _without_harmless_windows(
    spec: RunSpec, nodes: tuple[FreeNode, ...], principal: Principal
) -> tuple[FreeNode, ...]:
    """Returns the nodes without windows that the run may use, or that begin after its time limit."""
    needs = Demand(1, 0, 0, limit_s=longest_s(spec), workspace=principal.workspace.pk)
    return tuple(
        node if not node.windows or node.window_before_end(needs) else replace(node, windows=())
        for node in nodes
    )


def _source(spec: RunSpec, principal: Principal) -> tuple[tuple[str, ...] | None, list[Finding]]:
    """Returns the paths of the source's files, or None if the source does not exist, and findings about
    it."""
    if isinstance(spec.source, ExampleSource):
        try:
            return examples.paths(spec.source.name), []
        except SpecError as error:
            return None, [Finding("error", error.field, error.message)]
    if isinstance(spec.source, GitSource):
        return _git_source(spec.source, principal)
    snapshot = next(iter(snapshots_of(principal.workspace.pk, spec.source.id)), None)
    if snapshot is None:
        message = (
            "no such snapshot in this workspace; upload the source folder first and give the id of the answer"
        )
        return None, [Finding("error", "source.id", message)]
    return snapshot.paths, [Finding("hint", "source", warning) for warning in snapshot.warnings]


def _git_source(source: GitSource, principal: Principal) -> tuple[tuple[str, ...] | None, list[Finding]]:
    try:
        git_sources.read_git_source(source)
    except SpecError as error:
        return None, [Finding("error", error.field, error.message)]
    if not source.is_fetched:
        return None, [
            Finding(
                "hint",
                "source.url",
                "is fetched when the run is submitted; to have its files checked before, send the source to "
                "/api/v1/snapshots/git/ and use the source in its answer",
            )
        ]
    commit = git_sources.fetched(source, principal.workspace)
    if commit is None:
        message = (
            "this hub has not fetched that commit for this workspace; leave commit and id out, and name the "
            "commit as ref"
        )
        return None, [Finding("error", "source.commit", message)]
    warnings = [Finding("warning", "source", text) for text in commit.warnings]
    return commit.snapshot.paths, warnings + [
        Finding("hint", "source", text) for text in commit.snapshot.warnings
    ]


def _environment(spec: RunSpec, workspace: Workspace) -> Iterator[Finding]:
    notice = environment_notice(workspace, spec.environment.name, spec.environment.version)
    if notice:
        yield Finding("hint", "environment.name", notice.rstrip("."))


def _cluster(spec: RunSpec, cluster: Cluster | None, principal: Principal) -> Iterator[Finding]:
    if cluster is None:
        yield Finding("error", "resources.cluster", _no_cluster(spec.resources.cluster, principal))
    elif cluster.low_priority or _low_priority_nodes(cluster.pk):
        whose = "its nodes" if cluster.low_priority else "some of its nodes"
        yield Finding(
            "hint",
            "resources.cluster",
            f"{whose} are low-priority and may be taken away at any time; the run then restarts, up to "
            f"{MAX_PREEMPTIONS} times without using up a retry: save checkpoints in TRAINHUB_CHECKPOINT_DIR, "
            "where the newest one is when it restarts",
        )


@compiled
def _low_priority_nodes(cluster_id: int) -> QuerySet[Node, tuple[int]]:
    nodes = Node.objects.filter(cluster_id=cluster_id, revoked_at=None, low_priority=True)
    return nodes.values_list("pk")[:1]


def _outside_hints(cluster: Cluster | None, draft: DraftPlan) -> list[Finding]:
    """Returns what a cluster says whose queue is outside of the hub, nothing for others."""
    scheduler = None if cluster is None else backend_of(cluster).scheduler
    if cluster is None or scheduler is None:
        return []
    return [Finding("hint", field, sentence) for field, sentence in scheduler.hints(cluster, draft.demand)]


def _no_cluster(name: str, principal: Principal) -> str:
    existing = ", ".join(clusters_of(principal.workspace).values_list("name", flat=True))
    if not name:
        return "this workspace has no cluster yet; an operator adds the first machine at /clusters/add/"
    return f"there is no cluster {name!r} here; there are: {existing or 'none yet'}"


def _nodes(cluster: Cluster | None, principal: Principal, max_age_s: float) -> tuple[FreeNode, ...]:
    if cluster is None:
        return ()
    return backend_of(cluster).nodes(cluster, principal.workspace, quarantined_leases(), max_age_s)


def _scaling_up(
    draft: DraftPlan, principal: Principal, own_cluster: Mapping[str, tuple[FreeNode, ...]]
) -> Iterator[Finding]:
    """`own_cluster`: the nodes of the spec's cluster, which are read already, under its name."""
    if draft.demand.nodes < 2 or not draft.demand.gpus:
        return
    clusters = {
        cluster.name: own_cluster.get(cluster.name) or backend_of(cluster).nodes(cluster, principal.workspace)
        for cluster in clusters_of(principal.workspace)
    }
    devices = gpu_names(node.name for nodes in clusters.values() for node in nodes)
    yield from scaling_up(draft.demand, draft.spec.resources.cluster, clusters, devices)


def _quotas(demand: Demand, principal: Principal) -> Iterator[Finding]:
    balances = QuotaBook(principal.workspace).balances(principal.workspace, principal.user)
    refusal = quota_refusal(balances, demand)
    if refusal is not None:
        yield Finding("error" if refusal.permanent else "hint", refusal.field, refusal.sentence)
    full = waiting_refusal(balances)
    if full is not None:
        yield Finding("error", full.field, full.sentence)


def _disk(principal: Principal) -> Iterator[Finding]:
    sentence = disk_quota.refusal(principal.workspace, principal.user)
    if sentence:
        yield Finding("error", "source", sentence)


def _secrets(spec: RunSpec, principal: Principal) -> Iterator[Finding]:
    variables = spec.environment_variables.items()
    used = {name: variable.secret for name, variable in variables if variable.secret is not None}
    if not used:
        return
    existing = secrets.resolve(principal.workspace, principal.user, set(used.values()))
    for name, secret in used.items():
        if secret not in existing:
            yield Finding("error", f"environment_variables.{name}", _no_secret(secret, principal))


def _no_secret(name: str, principal: Principal) -> str:
    names = sorted({secret.name for secret in secrets.visible(principal)})
    there = ", ".join(names[:MAX_SECRET_NAMES]) or "none yet"
    return (
        f"there is no secret {name!r} in {principal.workspace} that you can use; store it under Settings, "
        f"Secrets. There are: {there}"
    )


def _priority(spec: RunSpec, principal: Principal) -> Iterator[Finding]:
    # Below 0 everybody may go: it only lets others pass.
    if spec.priority > 0 and not (principal.may(Role.OWNER) or may_operate(principal.user)):
        message = (
            f"{spec.priority} would place the run before those of others; "
            "only an owner of the workspace may set a value above 0"
        )
        yield Finding("error", "priority", message)
