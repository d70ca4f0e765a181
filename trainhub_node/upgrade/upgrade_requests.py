"""What the agent asks the hub about its own program."""

from __future__ import annotations

from pathlib import Path

from trainhub_launch.errors import WireError
from trainhub_launch.upgrades.program_order import ProgramOrder
from trainhub_node.link.hub_client import HubClient, HubUnavailable

ADDRESS = "/api/v1/node/upgrade/"


class UpgradeRequests:
    """All methods raise HubError."""

    def __init__(self, hub: HubClient) -> None:
        self._hub = hub

    def order(self) -> ProgramOrder | None:
        """Returns the order that this node is to follow now."""
        answer = self._hub.request("GET", ADDRESS)
        try:
            data = answer.json()["order"]
            return None if data is None else ProgramOrder.from_json(data)
        except (WireError, ValueError, KeyError, TypeError) as error:
            raise HubUnavailable(f"the hub's answer about an upgrade is invalid: {error}") from error

    def report_step(self, order: int, step: str, version: str, why: str = "") -> None:
        """Tells the hub how far the order is, or how it has ended. `version`: of the program that runs."""
        body = {"order": order, "step": step, "version": version, "why": why}
        self._hub.request("POST", ADDRESS, json=body)

    def download_archive(self, sha256: str, to: Path) -> None:
        """Goes on where an earlier call was cut off. Raises OSError of the local disk, too."""
        self._hub.download(f"{ADDRESS}programs/{sha256}", to)
