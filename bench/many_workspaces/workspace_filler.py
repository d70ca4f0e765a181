"""Fills the database of a hub with many workspaces, each with people, runs, models and a history. Django must
have been set up."""

from __future__ import annotations

from datetime import timedelta

from django.utils import timezone

from bench.support.run_filler import analyze, fill
from clusters.models import Cluster, MonthlyUse, Node, UseAccount
from jobs.models import Experiment, Run
from registry.models import ModelVersion, RegisteredModel
from workspaces.models import ApiToken, AuditEvent, Membership, User, Workspace
from workspaces.states import Role

VIEWED, OWNER, OPERATOR = "team-0", "team-0-person-0", "operator"
MODELS, QUEUED, NODES = 5, 20, 2
AT_ONCE = 1_000


def fill_workspaces(count: int, *, people: int, runs: int) -> None:
    """Makes `count` workspaces with so many people and runs in each, one cluster for all of them, and an
    operator. Only in the first one runs are waiting."""
    cluster = Cluster.objects.create(name="local")
    for number in range(NODES):
        Node.objects.create(
            cluster=cluster, name=f"node-{number}", token_digest=f"bench-{number}", slots=8, cores=8
        )
    for number in range(count):
        workspace = Workspace.objects.create(slug=f"team-{number}", name=f"Team {number}")
        owner = _people(workspace, people, cluster)
        experiments = fill(runs, workspace, user=owner, seed=number)
        _models(workspace, owner)
        _history(workspace, owner, runs)
        if workspace.slug == VIEWED:
            _queue(workspace, experiments[0], owner)
    operator = User.objects.create(username=OPERATOR, is_operator=True)
    viewed = Workspace.objects.get(slug=VIEWED)
    Membership.objects.create(workspace=viewed, user=operator, role=Role.OWNER)
    analyze()


def _people(workspace: Workspace, count: int, cluster: Cluster) -> User:
    """Makes the people of a workspace, with tokens and use of the cluster. Returns its owner, the first."""
    now = timezone.now()
    users = User.objects.bulk_create(
        User(username=f"{workspace.slug}-person-{number}") for number in range(count)
    )
    Membership.objects.bulk_create(
        Membership(workspace=workspace, user=user, role=Role.CONTRIBUTOR if number else Role.OWNER)
        for number, user in enumerate(users)
    )
    ApiToken.objects.bulk_create(
        ApiToken(user=user, workspace=workspace, name="script", digest=f"digest-{user.pk}", hint="th_x")
        for user in users
    )
    UseAccount.objects.bulk_create(
        UseAccount(cluster=cluster, workspace=workspace, person=user.pk, amount=3600.0, as_of=now)
        for user in users
    )
    month = now.date().replace(day=1)
    MonthlyUse.objects.bulk_create(
        MonthlyUse(workspace=workspace, person=user.pk, month=month, gpu_seconds=3600.0) for user in users
    )
    return users[0]


def _models(workspace: Workspace, owner: User) -> None:
    for number in range(MODELS):
        model = RegisteredModel.objects.create(workspace=workspace, name=f"net-{number}", last_version=1)
        ModelVersion.objects.create(model=model, number=1, source_path="outputs/net", created_by=owner)


def _history(workspace: Workspace, owner: User, runs: int) -> None:
    """Records the submission of each run in the audit trail."""
    AuditEvent.objects.bulk_create(
        (
            AuditEvent(
                actor=owner.username,
                workspace=workspace,
                verb="run.submit",
                subject=f"run {number}",
                detail={},
            )
            for number in range(1, runs + 1)
        ),
        batch_size=AT_ONCE,
    )


def _queue(workspace: Workspace, experiment: Experiment, owner: User) -> None:
    begin = timezone.now() - timedelta(hours=1)
    template = Run.objects.filter(workspace=workspace).values("spec").first()
    assert template is not None, "a workspace without runs has none to copy"
    for number in range(QUEUED):
        workspace.last_run_number += 1
        Run.objects.create(
            number=workspace.last_run_number,
            workspace=workspace,
            experiment=experiment,
            spec=template["spec"],
            display_name=f"waits {number}",
            created_by=owner,
            state_since=begin,
        )
    workspace.save(update_fields=["last_run_number"])
