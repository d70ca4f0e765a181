"""Providers with real executables, and machines requested from them."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from django.utils import timezone

from clusters.enrolment.join import join
from clusters.models import Cluster, Node, ProvidedMachine
from clusters.node_reports import heartbeat
from clusters.provisioning import machines, reconciler
from tests.clusters.builders import beat, gpu

KEEP = """
import json, os, pathlib, sys
here = pathlib.Path(__file__).parent
asked = json.load(sys.stdin)
with open(here / "calls", "a") as file:
    file.write(json.dumps({"verb": pathlib.Path(__file__).name, "env": sorted(os.environ), **asked}) + "\\n")
"""
MAKES = 'print(json.dumps({"id": "i-" + asked["name"]}))'
RELEASES = "print('{}')"
FAILS = 'print("no quota left for", asked.get("join_token"), file=sys.stderr); sys.exit(3)'
LATER = timedelta(hours=1)


class Provider:
    """A provider in a folder of its own, and what it was asked. `script`: Python, behind what notes the
    question."""

    def __init__(self, root: Path, name: str = "cloud") -> None:
        root.mkdir(mode=0o755, exist_ok=True)
        self.folder = root / name
        self.folder.mkdir(mode=0o755)
        self.script("provision", MAKES)
        self.script("release", RELEASES)

    def script(self, verb: str, text: str) -> None:
        path = self.folder / verb
        path.write_text(f"#!{sys.executable} -S\n{KEEP}\n{text}\n")
        path.chmod(0o755)

    @property
    def calls(self) -> list[dict[str, Any]]:
        path = self.folder / "calls"
        return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []

    def asked(self, verb: str) -> list[dict[str, Any]]:
        return [call for call in self.calls if call["verb"] == verb]


def growing(name: str = "grown", **changed: Any) -> Cluster:
    fields = {"provider": "cloud", "max_nodes": 3, "node_gpus": 1, "node_slots": 8, "idle_s": 60, **changed}
    return Cluster.objects.update_or_create(name=name, defaults=fields)[0]


def wanted(cluster: Cluster | None = None, number: int = 1) -> ProvidedMachine:
    chosen = cluster or growing()
    machines.request(chosen, number, "a test wants them", timezone.now())
    found = ProvidedMachine.objects.filter(cluster=chosen).order_by("pk").last()
    assert found is not None
    return found


def at_once(name: str, work: Callable[[], None]) -> bool:
    work()
    return True


def tend(machine: ProvidedMachine, *, later: timedelta = timedelta(0), at: datetime | None = None) -> str:
    """One look at all machines, so much later; the state of this one."""
    reconciler.reconcile((at or timezone.now()) + later, at_once)
    machine.refresh_from_db()
    return machine.state


def come(provider: Provider, machine: ProvidedMachine, gpus: int = 1, **changed: Any) -> Node:
    """The machine boots: it joins by the token that the provider was given, and reports."""
    question = [call for call in provider.asked("provision") if call["name"] == machine.name][-1]
    joined = join(question["join_token"], "", "cloud-host")
    assert joined.node.name == machine.name
    report(joined.node, gpus, **changed)
    return Node.objects.get(pk=joined.node.pk)


def report(node: Node, gpus: int = 1, *, at: datetime | None = None, **changed: Any) -> None:
    devices = (gpu(f"GPU-{node.name}-{index}", index) for index in range(gpus))
    heartbeat.apply(node, beat(*devices, **changed), at or timezone.now())


def up(provider: Provider, machine: ProvidedMachine) -> Node:
    tend(machine)
    node = come(provider, machine)
    assert tend(machine) == "up"
    return node
