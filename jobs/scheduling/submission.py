"""Submits a spec as a run: checks it, freezes its source, numbers and queues it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import PurePosixPath

from django.core.exceptions import PermissionDenied
from django.db import transaction
from django.db.models import QuerySet

from clusters.node_facts import REUSED_FOR_S
from datastores.run_inputs import with_choices
from environments.catalog import with_version
from jobs import lifecycle, tags
from jobs.checkpoints import origins, stores
from jobs.errors import Conflict
from jobs.lineage import dataset_uses
from jobs.models import Experiment, Run, RunEvent
from jobs.quotas.quota_check import QuotaBook
from jobs.scheduling.default_cluster import with_cluster
from jobs.scheduling.run_preview import Preview, preview
from jobs.sources import git_sources, snapshots
from jobs.states import Reason, RunKind, RunState
from jobs.task_messages import launch_run_soon
from trainhub_launch.errors import SpecError
from trainhub_launch.findings import Finding
from trainhub_launch.scheduler.quotas import waiting_refusal
from trainhub_launch.spec import DataInput, ExampleSource, GitSource, RunSpec, SnapshotSource
from trainhub_launch.spec_reader import read_spec
from workspaces import audit, background_loop
from workspaces.access import Principal, archived, lacking
from workspaces.database.compiled_queries import compiled
from workspaces.database.compiled_writes import insert_row, update_rows
from workspaces.models import Workspace
from workspaces.states import Role

MAX_KEY = 128


class SubmitRefused(SpecError):
    """The spec has errors. `field` and `message` belong to the first error; `findings` holds all findings."""

    def __init__(self, findings: tuple[Finding, ...]) -> None:
        first = next(finding for finding in findings if finding.level == "error")
        super().__init__(first.field, first.message)
        self.findings = findings


@dataclass(frozen=True)
class Submission:
    """A submitted run, with the findings of its preview. `is_repeat`: an earlier request with the same key
    submitted it, and nothing was checked again."""

    run: Run
    findings: tuple[Finding, ...] = ()
    is_repeat: bool = False


def submit(
    spec: RunSpec,
    principal: Principal,
    *,
    idempotency_key: str | None = None,
    cloned_from: Run | None = None,
) -> Run:
    """Like `submit_with_findings`, and returns only the run."""
    return submit_with_findings(spec, principal, idempotency_key=idempotency_key, cloned_from=cloned_from).run


def submit_with_findings(
    spec: RunSpec,
    principal: Principal,
    *,
    idempotency_key: str | None = None,
    cloned_from: Run | None = None,
) -> Submission:
    """Submits the spec and returns the queued run; with a key that was used before, returns that earlier run.
    `cloned_from`: a run of the same workspace that the new one remembers as its origin.

    Raises SubmitRefused for a spec with errors, SpecError for a bad key or name, and PermissionDenied."""
    if not principal.may(Role.CONTRIBUTOR):
        raise PermissionDenied(lacking(principal, Role.CONTRIBUTOR))
    if idempotency_key is not None and not 0 < len(idempotency_key) <= MAX_KEY:
        raise SpecError("Idempotency-Key", f"must have 1 to {MAX_KEY} characters")
    if len(spec.display_name) > 200:
        raise SpecError("display_name", "must have at most 200 characters")
    # Before the preview: a request that is repeated after a lost answer must succeed, even if the cluster is
    # gone meanwhile.
    existing = _existing_run(principal.workspace, idempotency_key, spec, principal)
    if existing is not None:
        return Submission(existing, is_repeat=True)
    workspace = principal.workspace
    request = _with_what_is_open(spec, principal)
    # Outside the transaction: it copies files, and asks a git server. Should the rest fail, the snapshot is
    # collected as unused.
    spec = _fetch_source(request, principal)
    reviewed = _reviewed(spec, principal)
    if reviewed.errors:
        raise SubmitRefused(reviewed.findings)
    frozen = _freeze_source(spec, principal)
    resumed = origins.source_of(spec, principal.workspace)
    with transaction.atomic():
        # The lock keeps numbers without gaps, and makes a second request with the same key find the first
        # run.
        (workspace,) = _lock_workspace(principal.workspace.pk)
        existing = _existing_run(workspace, idempotency_key, request, principal)
        if existing is not None:
            return Submission(existing, is_repeat=True)
        if workspace.archived_at is not None:
            # Since the principal was read: nothing may begin in it after its runs were counted.
            raise PermissionDenied(archived(workspace))
        # Of many submissions at once, each sees those before it.
        full = waiting_refusal(QuotaBook(workspace).balances(workspace, principal.user))
        if full is not None:
            raise SubmitRefused((Finding("error", full.field, full.sentence),))
        run = _create(workspace, frozen, reviewed, principal, key=idempotency_key, cloned_from=cloned_from)
        if resumed is not None:
            origins.copy_to(run, resumed)
    return Submission(run, reviewed.findings)


def _reviewed(spec: RunSpec, principal: Principal) -> Preview:
    """Returns the preview of the spec. In the web server, what another submission has just read about the
    nodes is good enough to accept a run, but not to refuse one."""
    if background_loop.is_running():
        recent = preview(spec, principal, REUSED_FOR_S)
        if not recent.errors:
            return recent
    return preview(spec, principal)


def _with_what_is_open(spec: RunSpec, principal: Principal) -> RunSpec:
    """Returns the spec with what the hub decides when a run is submitted: the cluster, versions, how inputs
    reach the script, and where the checkpoints go."""
    workspace = principal.workspace
    spec = stores.with_origins_store(with_cluster(spec, principal), workspace)
    return with_choices(with_version(spec, workspace), workspace)


def clone_spec(run: Run) -> RunSpec:
    """Returns the run's spec for another submission, without a name that TrainHub generated.

    Raises Conflict for an external run."""
    if run.kind == RunKind.EXTERNAL:
        raise Conflict(f"Run {run.number} is external: TrainHub did not start it, and cannot start it again.")
    spec = read_spec(run.spec)
    return replace(spec, display_name="") if spec.display_name == default_name(spec, run.number) else spec


def resumed_spec(run: Run, number: int | None = None) -> RunSpec:
    """Returns the run's spec for a run that begins with that checkpoint of it, by default with the newest
    complete one. Raises Conflict for an external run."""
    spec = clone_spec(run)
    return replace(spec, checkpoint=replace(spec.checkpoint, resume_from=run.pk, number=number))


def default_name(spec: RunSpec, number: int) -> str:
    """Returns the name of a run that was submitted without one: its script or program, and its number."""
    started = spec.script or (spec.command[0] if spec.command else "run")
    return f"{PurePosixPath(started).stem[:150] or 'run'} {number}"


def _fetch_source(spec: RunSpec, principal: Principal) -> RunSpec:
    """Returns the spec with the commit that its repository has now. Raises SubmitRefused."""
    if not isinstance(spec.source, GitSource) or spec.source.is_fetched:
        return spec
    try:
        return spec.with_source(git_sources.fetch(spec.source, principal))
    except SpecError as error:
        raise SubmitRefused((Finding("error", error.field, error.message),)) from error


def _freeze_source(spec: RunSpec, principal: Principal) -> RunSpec:
    if isinstance(spec.source, ExampleSource):
        return spec.with_source(SnapshotSource(id=snapshots.from_example(spec.source.name, principal).sha256))
    return spec


def _existing_run(workspace: Workspace, key: str | None, spec: RunSpec, principal: Principal) -> Run | None:
    if key is None:
        return None
    run = Run.objects.filter(workspace=workspace, idempotency_key=key).first()
    if run is not None and run.deleted_at is not None:
        raise SpecError(
            "Idempotency-Key",
            f"was used before, for run {run.number}, now deleted; restore it, or choose a new key",
        )
    # The source of an example is frozen when it is submitted, so it is compared in that form.
    if run is not None and _differs(read_spec(run.spec), _freeze_source(spec, principal)):
        raise SpecError(
            "Idempotency-Key", f"was used before, for run {run.number} with another spec; choose a new key"
        )
    return run


def _differs(stored: RunSpec, repeated: RunSpec) -> bool:
    # The stored spec may have a generated name, and a cluster, versions and modes that the hub chose, the
    # repeated one none of them.
    environment = repeated.environment
    if not environment.version and environment.name == stored.environment.name:
        environment = stored.environment
    cluster = repeated.resources.cluster or stored.resources.cluster
    resources = replace(repeated.resources, cluster=cluster)
    # A branch may have moved on since: what was asked for is still the same.
    source = repeated.source
    if isinstance(source, GitSource) and not source.is_fetched and isinstance(stored.source, GitSource):
        source = replace(source, commit=stored.source.commit, id=stored.source.id)
    inputs = {name: _as_chosen(item, stored.inputs.get(name)) for name, item in repeated.inputs.items()}
    return replace(stored, display_name="") != replace(
        repeated, display_name="", resources=resources, environment=environment, source=source, inputs=inputs
    )


def _as_chosen(repeated: DataInput, stored: DataInput | None) -> DataInput:
    """Returns the input with what the hub chose for the stored one, where it says nothing itself."""
    if stored is None or repeated.dataset != stored.dataset:
        return repeated
    return replace(repeated, mode=repeated.mode or stored.mode, version=repeated.version or stored.version)


@compiled
def _lock_workspace(workspace_id: int) -> QuerySet[Workspace]:
    return Workspace.objects.select_for_update().filter(pk=workspace_id)


@compiled
def _experiments(workspace_id: int, name: str) -> QuerySet[Experiment]:
    return Experiment.objects.filter(workspace_id=workspace_id, name=name)


def _check_not_deleted(experiment: Experiment, spec: RunSpec) -> None:
    """Raises SpecError if the experiment or the snapshot was deleted after the preview."""
    if experiment.deleted_at is not None:
        raise SpecError(
            "experiment",
            f"{spec.experiment!r} is deleted; restore it at /runs/deleted/, or choose another name",
        )
    if not snapshots.snapshots_of(experiment.workspace_id, spec.snapshot):
        raise SpecError("source", "is no longer kept; upload it again")


def _create(
    workspace: Workspace,
    spec: RunSpec,
    reviewed: Preview,
    principal: Principal,
    *,
    key: str | None,
    cloned_from: Run | None,
) -> Run:
    workspace.last_run_number += 1
    number = workspace.last_run_number
    update_rows(Workspace, {"pk": workspace.pk}, last_run_number=number)
    named = replace(spec, display_name=spec.display_name.strip() or default_name(spec, number))
    experiment = next(iter(_experiments(workspace.pk, spec.experiment)), None)
    if experiment is None:
        experiment, _ = Experiment.objects.get_or_create(workspace=workspace, name=spec.experiment)
    _check_not_deleted(experiment, spec)
    run = Run.objects.create(
        number=number,
        workspace=workspace,
        experiment=experiment,
        display_name=named.display_name,
        spec=named.to_json(),
        preview=reviewed.plan.to_json() if reviewed.plan else None,
        created_by=principal.user,
        idempotency_key=key,
        cloned_from=cloned_from,
        priority=named.priority,
    )
    insert_row(
        RunEvent,
        run_id=run.pk,
        to_state=RunState.QUEUED,
        message="Submitted.",
        actor=principal.user.get_username(),
        at=run.created_at,
    )
    audit.record(principal.user, "run.submit", str(run), workspace, name=named.display_name[:100])
    dataset_uses.record_uses(run, spec)
    tags.set_tags(run, {**git_sources.mlflow_tags(named.source, workspace), **named.tags})
    lifecycle.publish_change(run, RunState.QUEUED, Reason.NONE)
    launch_run_soon(run.pk)
    return run
