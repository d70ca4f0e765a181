"""What a real agent measures reaches whoever looks, second by second, and is kept in buckets for whoever
looks later."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest
from websockets.sync.client import connect

from tests.hub import Hub, eventually

pytestmark = pytest.mark.slow


def first_node(hub: Hub) -> dict[str, Any]:
    with hub.client() as client:
        nodes = client.get("/api/v1/nodes/").raise_for_status().json()
    return next(iter(nodes["results"] if isinstance(nodes, dict) else nodes))


def test_whoever_looks_sees_the_last_minute_and_every_second_from_then_on(hub: Hub) -> None:
    name = first_node(hub)["name"]
    address = f"{hub.url.replace('http', 'ws', 1)}/ws/telemetry/?nodes={name}"
    seen: dict[int, float] = {}
    with connect(address, additional_headers={"Authorization": f"Bearer {hub.owner_token()}"}) as socket:
        while len(seen) < 8:
            message = json.loads(socket.recv(timeout=30))
            assert (message["type"], message["node"], message["step_s"]) == ("telemetry.sampled", name, 1)
            place = message["host"]["metrics"].index("memory_used_bytes")
            seen |= {
                message["start"] + step: values[place]
                for step, values in enumerate(message["host"]["values"])
            }
    assert max(seen) > time.time() - 30
    assert all(used > 0 for used in seen.values())


def test_buckets_are_kept_and_read_again(hub: Hub) -> None:
    name = first_node(hub)["name"]

    def kept() -> list[float]:
        with hub.client() as client:
            told = (
                client.get(f"/api/v1/nodes/{name}/series/", params={"host": "memory_used_bytes"})
                .raise_for_status()
                .json()
            )
        means = told["host"].get("memory_used_bytes", {}).get("mean", [])
        return [mean for mean in means if mean is not None]

    assert eventually(lambda: kept() or None, 60)[0] > 0
