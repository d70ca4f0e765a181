"""The baseline of a node: when its fast network ports were last active, and the memory errors of its GPUs.

`ports`: "device/port" -> ISO time. `ecc`: GPU UUID -> [errors, growth at the last change, ISO time of it]."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from typing import TypeAlias

from clusters.alerts.facts import CounterGrowth
from clusters.models import Baseline, Node
from clusters.node_reports.inventory import PortVitals

ACTIVE = "ACTIVE"
# The retention is a matter of days, so an hour is exact enough, and unchanged baselines are not written.
WRITE_INTERVAL = timedelta(hours=1)
# A port that has been down for longer counts as taken out of use.
PORT_RETENTION = timedelta(days=7)
EccEntry: TypeAlias = tuple[int, int, str]


def refresh(stored: Baseline | None, node: Node, now: datetime) -> tuple[Baseline, bool]:
    """Returns the baseline updated from the node's vitals, and whether it has to be written."""
    before = stored or Baseline(node=node)
    ports = _ports(before.ports, node.vitals.get("network_ports", ()), now)
    ecc = _ecc(before.ecc, node.vitals.get("counters", {}), now)
    changed = (stored is None and bool(ports or ecc)) or (
        stored is not None and (ports, ecc) != (stored.ports, stored.ecc)
    )
    return Baseline(node=node, ports=ports, ecc=ecc), changed


def port_states(baseline: Baseline, node: Node) -> dict[str, bool]:
    """Returns "device/port" -> whether the port is active now, for all ports that were active recently."""
    active = {
        name for name, state in _names_and_states(node.vitals.get("network_ports", ())) if state == ACTIVE
    }
    return {name: name in active for name in baseline.ports}


def ecc_growth(baseline: Baseline, uuid: str, now: datetime) -> CounterGrowth | None:
    entry = baseline.ecc.get(uuid)
    if entry is None or not entry[1]:
        return None
    return CounterGrowth(by=entry[1], age_s=(now - datetime.fromisoformat(entry[2])).total_seconds())


def _ports(before: Mapping[str, str], reported: Iterable[PortVitals], now: datetime) -> dict[str, str]:
    last_active = {
        name: at for name, at in before.items() if now - datetime.fromisoformat(at) < PORT_RETENTION
    }
    for name, state in _names_and_states(reported):
        if state == ACTIVE and (
            name not in last_active or now - datetime.fromisoformat(last_active[name]) >= WRITE_INTERVAL
        ):
            last_active[name] = now.isoformat()
    return last_active


def _names_and_states(ports: Iterable[PortVitals]) -> list[tuple[str, str]]:
    return [(f"{port['device']}/{port['port']}", port["state"]) for port in ports]


def _ecc(
    before: Mapping[str, EccEntry], counters: Mapping[str, Mapping[str, int]], now: datetime
) -> dict[str, EccEntry]:
    """Returns the entries updated from the counters of the last heartbeat. A GPU that reports no counter
    keeps its entry."""
    entries = dict(before)
    for uuid, values in counters.items():
        count = values.get("ecc_uncorrected")
        if count is None:
            continue
        entry = before.get(uuid)
        # Errors from before a GPU was first seen are no growth. A smaller count is a new beginning,
        # because the counter was reset.
        if entry is None or count < entry[0]:
            entries[uuid] = (count, 0, "")
        elif count > entry[0]:
            entries[uuid] = (count, count - entry[0], now.isoformat())
    return entries
