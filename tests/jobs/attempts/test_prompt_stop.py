"""What one rank decides reaches the other node at once: a wake-up over a real broker, and the order in the
next answer."""

from __future__ import annotations

import celery
import pytest

from clusters import wakeups
from clusters.models import Node
from tests.jobs.builders import both_running, ended
from tests.people import make_contributor, principal_of

pytestmark = pytest.mark.django_db(transaction=True)


def messages(node: Node, *, wait_s: float = 0.0) -> int:
    """How many wake-ups lie in the node's queue; they are taken out of it."""
    count = 0
    with (
        celery.current_app.connection_for_read() as connection,
        connection.SimpleQueue(wakeups.queue_of(node)) as queue,
    ):
        while True:
            try:
                queue.get(timeout=wait_s if not count else 0.05).ack()
            except queue.Empty:
                return count
            count += 1


def test_a_dead_rank_ends_the_other_nodes_at_once(valkey: str) -> None:
    alpha, beta, run = both_running(principal_of(make_contributor()))
    messages(beta.node, wait_s=0.5)
    alpha.tell(run, "running", ended(0, 1))
    assert messages(beta.node, wait_s=10) == 1
    assert [order.why for order in beta.report().stop] == ["gang"]
    assert messages(alpha.node, wait_s=0.5) > 0, (
        "the start woke it, and nothing may stay for the tests after this one"
    )
