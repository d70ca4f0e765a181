"""Hostile programs of a node provider, and machines that came by one: each costs its own cluster and nothing
else."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from django.utils import timezone
from pytest_django import Settings

from clusters.enrolment.join import TokenNotUsable, join
from clusters.enrolment.node_tokens import EnrolmentError
from clusters.models import ClusterEvent, ProvidedMachine
from clusters.provisioning import reconciler
from tests.attacks.parsers.bounds import bounded
from tests.clusters.provisioning.builders import Provider, at_once, growing, tend, up, wanted
from tests.pages.builders import text_of
from tests.people import client_of, make_viewer

pytestmark = pytest.mark.django_db
ANSWERS = {
    "nesting": "print('[' * 60000)",
    "nesting in the id": "print('{\"id\": ' + '[' * 30000 + ']' * 30000 + '}')",
    "a number of 60,000 digits": "print('{\"id\": ' + '9' * 60000 + '}')",
    "half a character": 'print(\'{"id": "\\\\ud800"}\')',
    "NUL": "print(json.dumps({'id': 'a\\0b'}))",
    "an escape sequence": "print(json.dumps({'id': '\\x1b[2J'}))",
    "too long": "print(json.dumps({'id': 'x' * 201}))",
    "no text": "print(json.dumps({'id': {'$ne': ''}}))",
    "NaN": "print('{\"id\": NaN}')",
    "not UTF-8": 'sys.stdout.buffer.write(b\'{"id": "\\xff"}\')',
    "without an end": "while True: print('x' * 100000)",
    "complaints without an end": "while True: print('x' * 100000, file=sys.stderr)",
    "killed": "os.kill(os.getpid(), 9)",
}


@pytest.fixture
def provider(tmp_path: Path, settings: Settings) -> Provider:
    settings.NODE_PROVIDERS = str(tmp_path / "providers")
    settings.PROVIDER_TIMEOUT = 20.0
    return Provider(tmp_path / "providers")


@pytest.mark.parametrize("name", ANSWERS)
def test_a_hostile_answer_is_a_failure_that_is_told_in_a_bounded_sentence(
    provider: Provider, name: str
) -> None:
    provider.script("provision", ANSWERS[name])
    machine = wanted()
    state = bounded(lambda: tend(machine), max_cpu_s=1.0, max_memory_bytes=16 * 2**20)
    assert (state, machine.tries) == ("wanted", 1)
    assert 0 < len(machine.error) < 1000
    assert machine.error.isprintable()


def test_one_hostile_provider_does_not_keep_another_from_making_machines(
    provider: Provider, tmp_path: Path
) -> None:
    honest = Provider(tmp_path / "other", "honest")
    honest.folder.rename(provider.folder.parent / "honest")
    provider.script("provision", "os.kill(os.getpid(), 9)")
    bad, good = wanted(), wanted(growing("steady", provider="honest"))
    reconciler.reconcile(timezone.now(), at_once)
    assert {row.name: row.state for row in ProvidedMachine.objects.all()} == {
        bad.name: "wanted",
        good.name: "joining",
    }


def test_a_machine_joins_once_under_its_own_name_and_cluster_alone(provider: Provider) -> None:
    first, second = wanted(), wanted()
    up(provider, first)
    tend(second)
    tokens = {call["name"]: call["join_token"] for call in provider.asked("provision")}
    with pytest.raises(TokenNotUsable):
        join(tokens[first.name], "", "cloud-host")
    with pytest.raises(EnrolmentError, match=second.name):
        join(tokens[second.name], first.name, "cloud-host")


def test_complaints_are_shown_without_markup_secrets_or_escape_sequences(
    provider: Provider, settings: Settings
) -> None:
    settings.PROVIDER_TRIES = 1
    complaint = "'<script>alert(1)</script>\\x1b[2J ' + asked['join_token']"
    provider.script("provision", f"print({complaint}, file=sys.stderr); sys.exit(1)")
    machine = wanted()
    tend(machine)
    token = provider.asked("provision")[0]["join_token"]
    told = json.dumps(list(ClusterEvent.objects.values_list("message", flat=True)))
    page = text_of(client_of(make_viewer()), f"/clusters/{machine.cluster.name}/")
    assert "alert(1)" in told
    assert "<script>alert(1)" not in page
    for shown in (told, page):
        assert token not in shown
        assert token.partition(".")[0] not in shown
        assert "\x1b" not in shown
        assert "\\u001b" not in shown
