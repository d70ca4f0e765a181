"""What this process remembers of the queue gives the same order and the same placements as working out all of
it anew, whatever has changed in the database."""

from __future__ import annotations

import random
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.db import transaction
from django.utils import timezone

from clusters.fair_share import shares, use
from clusters.models import Cluster, ClusterShare, Lease, Node, Quota, UseAccount
from jobs.models import Run
from jobs.queues import queue_order, waiting_runs
from jobs.queues.demands import queued_with_ids, with_demands, with_needs
from jobs.quotas.quota_check import QuotaBook
from jobs.scheduling import queue_placement
from jobs.scheduling.hub_queue import HubQueue
from jobs.scheduling.run_actions import SubmitRefused
from jobs.states import RunState
from tests.jobs.builders import launched, node, queued
from tests.people import make_person, make_workspace, principal_of
from trainhub_launch.scheduler import fair_share
from trainhub_launch.scheduler.fair_share import FairQueue, Turn
from trainhub_launch.spec_reader import read_spec
from workspaces import process_caches
from workspaces.access import Principal
from workspaces.states import Role

pytestmark = pytest.mark.django_db


@pytest.fixture
def people(db: Any) -> list[Principal]:
    vision, speech = make_workspace("vision"), make_workspace("speech")
    return [
        principal_of(make_person("vic", Role.OWNER, vision)),
        principal_of(make_person("vera", Role.OWNER, vision)),
        principal_of(make_person("sam", Role.OWNER, speech)),
    ]


def submit(dice: random.Random, people: list[Principal]) -> None:
    gpus, nodes = dice.choice([(0, 1), (1, 1), (1, 1), (2, 1), (4, 1), (2, 2)])
    count = max(gpus, 1) * nodes
    body: dict[str, Any] = {
        "distribution": {"type": "pytorch", "process_count": count, "node_count": nodes},
        "resources": {"gpus_per_node": gpus},
        "priority": dice.choice([0, 0, 0, 1, -1]),
    }
    if dice.random() < 0.3:
        body["limits"] = {"timeout_s": dice.choice([60, 7200])}
    queued(dice.choice(people), **body)


def change(dice: random.Random, people: list[Principal]) -> None:
    """Changes something of the queue in the database, as another worker would."""
    runs = list(Run.objects.filter(state=RunState.QUEUED).order_by("number"))
    one = Run.objects.filter(pk=dice.choice(runs).pk) if runs else Run.objects.none()
    changes: list[Callable[[], object]] = [
        lambda: submit(dice, people),
        lambda: submit(dice, people),
        lambda: one.update(state=RunState.CANCELED),
        lambda: Run.objects.filter(state=RunState.CANCELED).update(state=RunState.QUEUED),
        lambda: one.update(priority=dice.randint(-2, 2)),
        lambda: one.update(claimed_at=timezone.now() - timedelta(seconds=dice.randint(0, 99))),
        lambda: one.update(claimed_at=None),
        lambda: one.update(created_by=dice.choice(people).user),
        lambda: one.update(created_by=None),
        lambda: UseAccount.objects.update_or_create(
            cluster=Cluster.objects.get(),
            workspace=dice.choice(people).workspace,
            person=dice.choice(people).user.pk,
            defaults={"amount": dice.uniform(0, 1e5), "as_of": timezone.now()},
        ),
        lambda: ClusterShare.objects.update_or_create(
            cluster=Cluster.objects.get(),
            workspace=dice.choice(people).workspace,
            defaults={"share": dice.choice([0, 1, 3])},
        ),
    ]
    dice.choice(changes)()


def full_order(cluster: Cluster, used: dict[tuple[int, int], float]) -> list[str]:
    """Reads all queued runs with their specs, works out what they need, and orders them."""
    runs = Run.objects.filter(state=RunState.QUEUED).select_related("workspace")
    by_turn: dict[Turn[int, int], str] = {}
    for item in with_demands([(run, read_spec(run.spec)) for run in runs]):
        run, needs = item.run, item.needs
        turn = Turn(
            submitted_at=run.created_at.timestamp(),
            run=f"{run.number:010}-{run.pk}",
            workspace=run.workspace_id,
            person=run.created_by_id or 0,
            priority=run.priority,
            weight=needs.nodes * fair_share.weight(needs.gpus, needs.slots),
            claimed_at=None if run.claimed_at is None else run.claimed_at.timestamp(),
        )
        by_turn[turn] = run.pk
    return [by_turn[turn] for turn in FairQueue(by_turn).order(used, shares.shares_of(cluster))]


@pytest.mark.parametrize("seed", range(6))
def test_the_order_is_that_of_the_full_computation(seed: int, people: list[Principal]) -> None:
    dice = random.Random(seed)  # noqa: S311
    node("alpha", gpus=4)
    node("beta", gpus=4)
    for _ in range(12):
        for _ in range(dice.randint(1, 4)):
            change(dice, people)
        cluster = Cluster.objects.get()
        used = use.use_of(cluster)
        queue = waiting_runs.read_queues([cluster.name]).of(cluster.name)
        order = [run.pk for run in queue_order.in_order(cluster, queue, used)]
        assert order == full_order(cluster, used)
        assert queue.runs.keys() == set(order)
        assert sum(queue.group_sizes.values()) == len(order)


def test_a_run_that_takes_whole_nodes_weighs_what_the_nodes_have_now(people: list[Principal]) -> None:
    node("alpha", gpus=2)
    queued(people[0], resources={"gpus_per_node": "all"})
    (run,) = waiting_runs.read_queues().of("local").runs.values()
    assert run.turn.weight == 2
    node("beta", gpus=8)
    (run,) = waiting_runs.read_queues().of("local").runs.values()
    assert run.turn.weight == 8


def place_each() -> None:
    """Looks at every run, in order: the walk that passes over none."""
    cluster = Cluster.objects.get()
    queue = waiting_runs.read_queues().of(cluster.name)
    cluster_queue = HubQueue(cluster, QuotaBook())
    for waiting in list(queue_order.in_order(cluster, queue)):
        (run,) = queued_with_ids([waiting.pk])
        cluster_queue.process(with_needs(run))
    cluster_queue.finish(queue)


def outcome_of(place: Callable[[], object]) -> tuple[Any, Any, Any]:
    """Returns what the runs hold, who is at the head, and what each run says; nothing of it stays."""
    with transaction.atomic():
        # However long the test takes, the nodes report.
        Node.objects.update(last_report_at=timezone.now())
        process_caches.clear_all()
        place()
        leases = set(Lease.objects.filter(released_at=None).values_list("holder", "node__name", "slots"))
        gpus = sorted((lease.holder, lease.node_id, tuple(lease.gpus)) for lease in Lease.objects.all())
        heads = set(Run.objects.exclude(claimed_at=None).values_list("pk", flat=True))
        says = {run.pk: (run.state, run.reason, run.facts) for run in Run.objects.all()}
        transaction.set_rollback(True)
    return (leases, gpus), heads, says


@pytest.mark.parametrize("seed", range(8))
def test_a_walk_does_the_same_as_one_that_looks_at_every_run(
    seed: int, people: list[Principal], monkeypatch: pytest.MonkeyPatch
) -> None:
    dice = random.Random(100 + seed)  # noqa: S311
    for name in ("alpha", "beta", "gamma")[: dice.randint(1, 3)]:
        node(name, gpus=dice.choice([2, 4]), slots=2)
    for _ in range(dice.randint(0, 3)):
        limits = {"limits": {"timeout_s": 600}} if dice.random() < 0.5 else {}
        launched(dice.choice(people), resources={"gpus_per_node": 1}, **limits)
    if dice.random() < 0.5:
        Quota.objects.create(workspace=people[2].workspace, scope="workspace", gpus=1)
    for _ in range(25):
        try:
            submit(dice, people)
        except SubmitRefused:
            continue  # larger than all nodes
    leases, heads, says = outcome_of(place_each)
    assert outcome_of(queue_placement.place_queued) == (leases, heads, says)
    # Of a long queue, most walks end as soon as nothing can change any more.
    monkeypatch.setattr(queue_placement, "SHORT_QUEUE", 0)
    monkeypatch.setattr(queue_placement, "_whole_due", {"local": float("inf")})
    shortened = outcome_of(queue_placement.place_queued)
    assert shortened[:2] == (leases, heads)
    states = {pk: state for pk, (state, *_) in shortened[2].items()}
    assert states == {pk: state for pk, (state, *_) in says.items()}


def test_an_unreadable_spec_fails_its_run_and_no_other(people: list[Principal]) -> None:
    node("alpha", gpus=1)
    broken, whole = queued(people[0]), queued(people[0])
    Run.objects.filter(pk=broken.pk).update(spec={"resources": {"cluster": "local"}, "limits": 7})
    process_caches.clear_all()
    queue_placement.place_queued()
    broken.refresh_from_db()
    whole.refresh_from_db()
    assert (broken.state, whole.state) == (RunState.FAILED, RunState.PROVISIONING)
