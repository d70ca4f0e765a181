"""What tests in a browser ask of the hub."""

from __future__ import annotations

from tests.hub import Hub


def number_of(hub: Hub, run: str) -> int:
    with hub.client() as client:
        return int(client.get(f"/api/v1/runs/{run}/").json()["number"])
