"""For any behaviour of a provider, every machine that it created ends up in use or released."""

from __future__ import annotations

import json
import random
from datetime import datetime, timedelta

import pytest
from django.utils import timezone

from clusters.enrolment.node_tokens import EnrolmentError
from clusters.models import ProvidedMachine
from clusters.provisioning import machines, reconciler
from clusters.provisioning.states import FINISHED, MachineState
from tests.clusters.provisioning.builders import Provider, at_once, come, growing, report

pytestmark = pytest.mark.django_db
STORE = """
import random
store = here / "machines.json"
living = set(json.loads(store.read_text())) if store.exists() else set()
mood = json.loads((here / "mood").read_text())
random.seed(sum(1 for _ in open(here / "calls")) + mood["seed"])
behaves = mood["good"] or random.random() < 0.5
"""
MAKES = """
if behaves or random.random() < 0.6:
    living.add(asked["name"])
store.write_text(json.dumps(sorted(living)))
if not behaves:
    random.choice([
        lambda: sys.exit(1), lambda: print("garbage"), lambda: print("{}"), lambda: os.kill(os.getpid(), 9)
    ])()
print(json.dumps({"id": "i-" + asked["name"]})) if behaves else None
"""
RELEASES = """
if behaves or random.random() < 0.5:
    living.discard(asked["name"])
store.write_text(json.dumps(sorted(living)))
print("{}") if behaves else sys.exit(2)
"""
STEP = timedelta(seconds=400)


@pytest.mark.parametrize("seed", range(4))
def test_nothing_is_forgotten(provider: Provider, seed: int) -> None:
    provider.script("provision", STORE + MAKES)
    provider.script("release", STORE + RELEASES)
    mood = provider.folder / "mood"
    mood.write_text(json.dumps({"seed": seed, "good": False}))
    dice, cluster, now = random.Random(seed), growing(max_nodes=5), timezone.now()  # noqa: S311
    for _ in range(16):
        now += STEP
        _something(dice, provider, now)
        reconciler.reconcile(now, at_once)
    mood.write_text(json.dumps({"seed": seed, "good": True}))
    for machine in machines.active(cluster):
        machines.release(machine, "the test ends", now)
    for _ in range(14):
        now += STEP * 3
        reconciler.reconcile(now, at_once)
        for machine in machines.active(cluster):
            machines.release(machine, "the test ends", now)
    assert [(item.state, item.error) for item in machines.active(cluster)] == []
    assert json.loads((provider.folder / "machines.json").read_text()) == []


def _something(dice: random.Random, provider: Provider, now: datetime) -> None:
    """More is asked for, one joins, one is let go, the hub was restarted in a call."""
    found = list(ProvidedMachine.objects.exclude(state__in=FINISHED))
    if len(found) < 3:
        machines.request(growing(), 1, "dice", now)
    chosen = dice.choice(found) if found else None
    if chosen is None:
        return
    if chosen.state == "joining" and dice.random() < 0.7:
        try:
            report(come(provider, chosen), at=now)
        except EnrolmentError:
            return
    elif chosen.state == "up" and dice.random() < 0.5:
        machines.release(chosen, "dice", now)
    elif chosen.state in ("wanted", "releasing") and dice.random() < 0.4:
        # Its call was cut off by a restart, and nobody heard the answer.
        to = MachineState.PROVISIONING if chosen.state == "wanted" else MachineState.RELEASING
        machines.advance(chosen, to, now, calling_until=timezone.now())
