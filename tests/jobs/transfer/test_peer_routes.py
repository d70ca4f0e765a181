"""The routes by which nodes learn from whom they can take a dataset's files, and their tickets."""

from __future__ import annotations

from typing import Any

import httpx
import pytest
from asgiref.sync import sync_to_async
from django.utils import timezone

from clusters.models import Node
from datastores.models import Datastore, PeerServer
from jobs.models import Attempt, AttemptNode, Run
from jobs.node_api import run_secrets
from jobs.peers import tickets
from tests.datastores.datasets.builders import dataset, ready
from tests.datastores.test_datastores import able
from tests.jobs.builders import Played, launched
from tests.jobs.raw import enrolled
from trainhub_launch.machine import DATASETS, DOWNLOADS, HUB_DATA, PEERS
from workspaces.access import Principal

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("valkey")]
NEWS = {
    "blocks": 3,
    "after": 0,
    "hashes": "",
    "needs": [],
    "wants": 2,
    "first": True,
    "stalled": False,
    "complete": False,
}
INPUTS = {"birds": {"dataset": "birds"}}
SERVER = {"address": "10.0.0.7", "port": 4000}


def claimed(who: Principal, *capabilities: str) -> tuple[Run, Played]:
    """A run that reads a dataset, on a node with these capabilities beside another that takes part."""
    ready(dataset(who.workspace), "a.bin", "b.bin")
    alpha = able("alpha", DOWNLOADS, DATASETS, *capabilities)
    run = launched(who, inputs=INPUTS)
    beta = able("beta", DOWNLOADS, DATASETS, PEERS)
    assert beta.node.cluster_id == alpha.node.cluster_id
    return run, alpha


def part_of(run: Run) -> AttemptNode:
    return AttemptNode.objects.select_related("attempt__run", "node__cluster").get(attempt__run=run)


class TestOrder:
    def test_names_the_hub_to_a_node_that_takes_part(self, who: Principal) -> None:
        run, alpha = claimed(who, PEERS)
        download = alpha.claim(run).downloads["birds"]
        assert download.peers.endswith(tickets.ADDRESS)
        values = run_secrets.take(alpha.node, run.pk, 1, alpha.nonce)
        assert values == {download.peer_key: tickets.hub_ticket(part_of(run), download.swarm)}
        assert run_secrets.masked_texts(values), "it is masked in the logs"

    def test_names_none_to_an_older_node(self, who: Principal) -> None:
        run, alpha = claimed(who)
        assert alpha.claim(run).downloads["birds"].peers == ""
        assert run_secrets.take(alpha.node, run.pk, 1, alpha.nonce) == {}

    def test_names_none_where_no_other_node_takes_part(self, who: Principal) -> None:
        run, alpha = claimed(who, PEERS)
        Node.objects.exclude(pk=alpha.node.pk).update(capabilities="")
        assert alpha.claim(run).downloads["birds"].peers == ""

    def test_names_none_for_files_that_come_from_the_hub(self, who: Principal) -> None:
        ready(dataset(who.workspace), "a.bin")
        Datastore.objects.update(kind="hub", settings={})
        alpha = able("alpha", DOWNLOADS, DATASETS, HUB_DATA, PEERS)
        run = launched(who, inputs=INPUTS)
        able("beta", DOWNLOADS, DATASETS, HUB_DATA, PEERS)
        assert alpha.claim(run).downloads["birds"].peers == ""
        assert run_secrets.take(alpha.node, run.pk, 1, alpha.nonce) == {}


@sync_to_async
def ticket_of(who: Principal) -> tuple[Run, str]:
    run, alpha = claimed(who, PEERS)
    download = alpha.claim(run).downloads["birds"]
    return run, tickets.hub_ticket(part_of(run), download.swarm)


async def post(client: httpx.AsyncClient, ticket: str, **changes: Any) -> httpx.Response:
    headers = {"Authorization": f"Bearer {ticket}"}
    return await client.post(tickets.ADDRESS, json={**NEWS, **changes}, headers=headers)


async def test_a_download_learns_what_to_read_and_who_serves(
    client: httpx.AsyncClient, who: Principal
) -> None:
    _, ticket = await ticket_of(who)
    answer = await post(client, ticket)
    assert answer.json() == {"read": [0, 1], "after": 0, "hashes": [], "peers": []}
    assert answer.headers["cache-control"] == "no-store"


async def test_the_ticket_ends_with_the_attempt(client: httpx.AsyncClient, who: Principal) -> None:
    run, ticket = await ticket_of(who)
    await Attempt.objects.filter(run=run).aupdate(ended_at=timezone.now())
    assert (await post(client, ticket)).status_code == httpx.codes.UNAUTHORIZED


async def test_a_forged_ticket_is_refused(client: httpx.AsyncClient, who: Principal) -> None:
    _, ticket = await ticket_of(who)
    words = ticket.split("_")
    forged = [
        "",
        "thp_" + "x" * 40,
        "_".join([*words[:4], "cd" * 32, *words[5:]]),
        "_".join([*words[:3], str(int(words[3]) + 1), *words[4:]]),
        ticket[:-1] + ("A" if ticket[-1] != "A" else "B"),
    ]
    for text in forged:
        assert (await post(client, text)).status_code == httpx.codes.UNAUTHORIZED, text


@pytest.mark.parametrize(
    "wrong",
    [
        {"blocks": -1},
        {"blocks": 2**40},
        {"blocks": True},
        {"hashes": "AAAA"},
        {"hashes": "?"},
        {"needs": [3]},
        {"needs": "all"},
        {"wants": None},
        {"first": 1},
    ],
)
async def test_a_wrong_body_is_refused(
    client: httpx.AsyncClient, who: Principal, wrong: dict[str, Any]
) -> None:
    _, ticket = await ticket_of(who)
    assert (await post(client, ticket, **wrong)).status_code == httpx.codes.BAD_REQUEST


async def test_a_node_that_serves_gets_keys_of_its_own(client: httpx.AsyncClient, who: Principal) -> None:
    alpha, headers = await enrolled("alpha")
    first = (await client.post("/api/v1/node/peer-server/", json=SERVER, headers=headers)).json()
    second = (await client.post("/api/v1/node/peer-server/", json=SERVER, headers=headers)).json()
    assert set(first) == {"certificate", "key", "ticket_key"}
    assert not set(first.values()) & set(second.values())
    row = await PeerServer.objects.aget(node=alpha)
    assert (row.address, row.port) == ("10.0.0.7", 4000)
    assert tickets.ticket_key(row).hex() == second["ticket_key"]


@pytest.mark.parametrize(
    "wrong", [{"address": "node.example.org"}, {"port": 0}, {"port": "22"}, {"port": 65536}]
)
async def test_a_wrong_place_of_a_server_is_refused(
    client: httpx.AsyncClient, who: Principal, wrong: dict[str, Any]
) -> None:
    _, headers = await enrolled("alpha")
    answer = await client.post("/api/v1/node/peer-server/", json={**SERVER, **wrong}, headers=headers)
    assert answer.status_code == httpx.codes.BAD_REQUEST
