"""What was seen of a node before: which fast network ports were active, how many memory errors its GPUs
had."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

from clusters.alerts.facts import Growth
from clusters.models import Baseline, Node

ACTIVE = "ACTIVE"
WRITTEN_EVERY = timedelta(hours=1)
FORGOTTEN_AFTER = timedelta(days=7)
"""A port that has been down for so long was taken out of use."""


def refresh(known: Baseline | None, node: Node, now: datetime) -> tuple[Baseline, bool]:
    """The baseline with what the node's vitals tell, and whether that has to be written."""
    before = known or Baseline(node=node)
    ports = _ports(before.ports, node.vitals.get("network_ports", ()), now)
    ecc = _ecc(before.ecc, node.vitals.get("counters", {}), now)
    changed = (known is None and bool(ports or ecc)) or (
        known is not None and (ports, ecc) != (known.ports, known.ecc)
    )
    return Baseline(node=node, ports=ports, ecc=ecc), changed


def ports_now(baseline: Baseline, node: Node) -> dict[str, bool]:
    """The ports that have been active of late, and whether each is now."""
    active = {name for name, state in _told(node.vitals.get("network_ports", ())) if state == ACTIVE}
    return {name: name in active for name in baseline.ports}


def growth(baseline: Baseline, uuid: str, now: datetime) -> Growth | None:
    entry = baseline.ecc.get(uuid)
    if entry is None or not entry[1]:
        return None
    return Growth(by=entry[1], age_s=(now - datetime.fromisoformat(entry[2])).total_seconds())


def _ports(before: Mapping[str, str], told: Any, now: datetime) -> dict[str, str]:
    kept = {name: at for name, at in before.items() if now - datetime.fromisoformat(at) < FORGOTTEN_AFTER}
    for name, state in _told(told):
        if state == ACTIVE and (
            name not in kept or now - datetime.fromisoformat(kept[name]) >= WRITTEN_EVERY
        ):
            kept[name] = now.isoformat()
    return kept


def _told(ports: Any) -> list[tuple[str, str]]:
    return [(f"{port['device']}/{port['port']}", port["state"]) for port in ports]


def _ecc(
    before: Mapping[str, list[Any]], counters: Mapping[str, Mapping[str, int]], now: datetime
) -> dict[str, list[Any]]:
    """What a GPU has had before it was first seen is no news."""
    found = dict(before)
    for uuid, told in counters.items():
        count = told.get("ecc_uncorrected")
        if count is None:
            continue
        entry = before.get(uuid)
        if entry is None or count < entry[0]:
            found[uuid] = [count, 0, ""]
        elif count > entry[0]:
            found[uuid] = [count, count - entry[0], now.isoformat()]
    return found
