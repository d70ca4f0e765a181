"""Runs that name one of the workspace's own environments, from the submission to the order of the node."""

from __future__ import annotations

import pytest
from django.test import Client
from django.utils import timezone

from clusters.models import Node
from environments import changes
from jobs.models import PreparedEnvironment, Run
from jobs.scheduling import submission
from jobs.scheduling.submission import SubmitRefused, clone_spec, submit
from jobs.sources.first_use import first_uses
from jobs.states import RunState
from jobs.wizard.choices import environment_choices
from tests.environments.locks import LOCK, failed, locked
from tests.jobs.builders import Played, launched, node, queued, spec
from tests.people import client_of, make_contributor, make_person, make_workspace, principal_of
from trainhub_launch.log_names import ENVIRONMENT_LOG
from workspaces.access import Principal
from workspaces.states import Role

pytestmark = pytest.mark.usefixtures("valkey")


def version_of(run: Run) -> str:
    return str(run.spec["environment"]["version"])


class TestSubmission:
    def test_keeps_the_newest_locked_version_for_retries_and_clones(self, who: Principal) -> None:
        locked(who)
        run = queued(who, environment={"name": "mine"})
        locked(who)
        assert version_of(run) == "1"
        assert clone_spec(run).environment.version == "1"
        assert version_of(queued(who, environment={"name": "mine"})) == "2"
        assert version_of(queued(who, environment={"name": "mine", "version": "1"})) == "1"

    def test_is_recognized_when_it_is_repeated_after_a_new_version(self, who: Principal) -> None:
        locked(who)
        node("alpha")
        first = submit(spec(who, environment={"name": "mine"}), who, idempotency_key="once")
        locked(who)
        again = submission.submit_with_findings(
            spec(who, environment={"name": "mine"}), who, idempotency_key="once"
        )
        assert (again.run.pk, again.is_repeat) == (first.pk, True)

    @pytest.mark.parametrize(
        ("ref", "field", "words"),
        [
            ({"name": "resolving"}, "environment.version", "is still being resolved"),
            ({"name": "failed"}, "environment.version", "could not be resolved"),
            ({"name": "mine", "version": "7"}, "environment.version", "has no version '7'; it has 1"),
            ({"name": "nope"}, "environment.name", "no environment is called 'nope'; there are: "),
            ({"name": "old"}, "environment.version", "needs Python 3.8, which is not on the chosen node"),
        ],
    )
    def test_of_what_cannot_be_used_names_the_field(
        self, who: Principal, ref: dict[str, str], field: str, words: str
    ) -> None:
        node("alpha")
        locked(who)
        locked(who, "old", python="3.8")
        failed(who, "failed")
        changes.create_version(who, "resolving", "pip", "x", "3.11")
        with pytest.raises(SubmitRefused) as error:
            queued(who, environment=ref)
        errors = [item for item in error.value.findings if item.level == "error"]
        assert [item.field for item in errors] == [field]
        assert words in errors[0].message


class TestPlacement:
    def test_is_on_a_node_that_has_its_python(self, who: Principal) -> None:
        node("alpha")
        beta = node("beta")
        Node.objects.filter(pk=beta.pk).update(interpreters=[{"path": "/opt/python", "version": "3.12.4"}])
        locked(who, python="3.12")
        run = launched(who, environment={"name": "mine"})
        assert [item["name"] for item in run.attempts.get().placement] == ["beta"]
        Node.objects.filter(pk=beta.pk).update(drained_at=timezone.now())
        waiting = launched(who, environment={"name": "mine"})
        assert "alpha has no Python 3.12, but 3.11.7" in waiting.facts["detail"]
        assert waiting.state == RunState.QUEUED


class TestOrder:
    def test_carries_the_lock(self, who: Principal) -> None:
        locked(who)
        order = Played(node("alpha")).claim(launched(who, environment={"name": "mine"}))
        assert order.environment.lock == LOCK
        assert order.environment.python == "/usr/bin/python3"
        # What an agent of the version before installs, which reads no locks.
        assert order.environment.requirements == ("tinylib==1.0",)

    def test_two_workspaces_with_the_same_name_are_recorded_apart(self, who: Principal) -> None:
        alpha = Played(node("alpha"))
        other = principal_of(make_person("mallory", Role.CONTRIBUTOR, make_workspace("other")))
        for principal in (who, other):
            locked(principal)
            run = launched(principal, environment={"name": "mine"})
            alpha.claim(run)
            alpha.tell(run, "preparing")
            alpha.tell(run, "running", logs={ENVIRONMENT_LOG: 10})
            alpha.finish(run)
        rows = PreparedEnvironment.objects.order_by("pk")
        assert [row.own_version and row.own_version.environment.owner.slug for row in rows] == [
            who.workspace.slug,
            "other",
        ]
        assert all(not use.nodes for use in first_uses(who.workspace).values())


class TestWizard:
    def test_lists_own_ones_first_and_says_what_is_not_locked(self, who: Principal) -> None:
        failed(who, "b")
        locked(who, "a")
        changes.create_version(who, "a", "pip", "x", "3.11")
        first, second = environment_choices(who.workspace)[:2]
        assert (first.value, first.title, first.is_usable) == ("a:1", "a, version 1", True)
        assert "Version 2 is not locked: resolving." in first.sentence
        assert (second.value, second.is_usable, second.state) == ("b:1", False, "failed")
        assert "No index has a package x." in second.sentence

    def test_begins_with_one(self, who: Principal) -> None:
        locked(who)
        browser: Client = client_of(make_contributor())
        answer = browser.post("/runs/new/environment/", {"environment": "mine:1"}, follow=True)
        address = answer.redirect_chain[-1][0].replace("/source/", "/environment/")
        page = browser.get(address).content.decode()
        assert 'value="mine:1"\n              checked' in page or 'value="mine:1"' in page
        assert "mine, version 1" in page
