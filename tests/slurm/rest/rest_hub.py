"""A hub that is not root and has no Slurm: it asks a slurmrestd."""

from __future__ import annotations

import secrets
from pathlib import Path
from typing import Any, Self

from tests.slurm.hub import CLUSTER, SlurmHub
from tests.slurm.login_node.plain_hub import UnprivilegedHub
from tests.slurm.rest.rest_host import OBSERVER, RestHost

ADDRESS = f"/api/v1/clusters/{CLUSTER}"


class RestHub(SlurmHub):
    """As `SlurmHub`; its owner's token is one of ada."""

    def __init__(self, rest: RestHost, folder: Path) -> None:
        super().__init__(rest.cluster, folder)
        self.rest = rest
        self.place = rest.cluster.folder / f"hub-{secrets.token_hex(3)}"
        (self.place / "own").mkdir(parents=True)
        self.hub = UnprivilegedHub(self.place, rest.cluster.hub_address)

    def start(self) -> Self:
        super().start()
        self.enter_token(self.rest.token("ada"))
        return self

    @property
    def partition(self) -> dict[str, Any]:
        return {**super().partition, "rest_url": self.rest.url, "rest_ca": self.rest.authority}

    def prepare_login(self) -> None:
        self.send("PUT", f"{ADDRESS}/observer-token/", {"token": self.rest.token(OBSERVER)})

    def enter_token(self, token: str) -> None:
        self.send("PUT", f"{ADDRESS}/slurm-token/", {"token": token})

    def end_token(self) -> None:
        """As if the owner's token had expired."""
        expression = "SlurmToken.objects.exclude(person=None).update(expires_at='2020-01-01T00:00:00Z')"
        assert self.evaluate(expression) == 1

    def cancel(self, run: str) -> None:
        self.runs.client.post(f"/api/v1/runs/{run}/cancel/").raise_for_status()

    def test(self) -> dict[str, dict[str, str]]:
        """The checks of its cluster, by name."""
        answer = self.runs.client.post(f"{ADDRESS}/test/").raise_for_status().json()
        return {check["name"]: check for check in answer["checks"]}
