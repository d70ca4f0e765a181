"""Which node gets which secrets: only those that its claimed order names."""

from __future__ import annotations

import json

import pytest

from clusters.models import Node
from jobs.models import Attempt, AttemptNode, Run
from jobs.node_api import claims, run_secrets
from jobs.scheduling import run_preview
from jobs.states import RunState
from tests.jobs.builders import Played, launched, node, spec
from tests.people import make_person, make_workspace
from workspaces.access import Principal, membership_principal
from workspaces.models import Secret, SecretUse
from workspaces.secrets import store
from workspaces.states import Role

pytestmark = pytest.mark.django_db
NONCE = "a" * 32
VALUE = "hf_not-for-your-eyes"
VARIABLES = {"KEY": {"secret": "api"}}


@pytest.fixture
def secret(who: Principal) -> Secret:
    return store.put(who, "api", VALUE, store.PERSON)


def claimed(who: Principal, **changed: object) -> tuple[Played, Run]:
    alpha = Played(node())
    run = launched(who, environment_variables=VARIABLES, **changed)
    alpha.claim(run, NONCE)
    run.refresh_from_db()
    return alpha, run


class TestTake:
    def test_gives_the_values_that_the_order_names(self, who: Principal, secret: Secret) -> None:
        alpha, run = claimed(who)
        store.put(who, "other", "of-no-use-here", store.PERSON)
        values = run_secrets.take(alpha.node, run.pk, 1, NONCE)
        assert values == {"api": VALUE}
        assert run_secrets.masked_texts(values) == [VALUE]
        use = SecretUse.objects.get()
        assert (use.secret, use.subject, use.node) == (secret, run.pk, "alpha")

    def test_no_plan_order_or_row_of_the_run_has_the_value(self, who: Principal, secret: Secret) -> None:
        alpha = Played(node())
        run = launched(who, environment_variables=VARIABLES)
        order = alpha.claim(run, NONCE)
        run_secrets.take(alpha.node, run.pk, 1, NONCE)
        assert VALUE not in json.dumps(order.to_json())
        for model in (Run, Attempt, AttemptNode):
            assert VALUE not in str(list(model.objects.values()))

    def test_refuses_another_node_nonce_or_attempt_and_one_that_is_settled(
        self, who: Principal, secret: Secret
    ) -> None:
        alpha, run = claimed(who)
        beta = Played(node("beta"))
        for on, number, nonce, words in (
            (beta, 1, NONCE, "not placed"),
            (alpha, 2, NONCE, "not placed"),
            (alpha, 1, "b" * 32, "another nonce"),
            (alpha, 1, "", "another nonce"),
        ):
            with pytest.raises(claims.Refused, match=words):
                run_secrets.take(on.node, run.pk, number, nonce)
        AttemptNode.objects.update(settled_at=run.created_at)
        with pytest.raises(claims.Refused, match="over"):
            run_secrets.take(alpha.node, run.pk, 1, NONCE)
        assert not SecretUse.objects.exists()

    def test_before_the_claim_there_is_nothing(self, who: Principal, secret: Secret) -> None:
        alpha = Played(node())
        run = launched(who, environment_variables=VARIABLES)
        with pytest.raises(claims.Refused, match="another nonce"):
            run_secrets.take(alpha.node, run.pk, 1, "")

    def test_one_that_was_deleted_ends_the_run_with_its_name(self, who: Principal, secret: Secret) -> None:
        alpha, run = claimed(who)
        store.delete(who, secret)
        with pytest.raises(claims.Refused, match="There is no secret api any more"):
            run_secrets.take(alpha.node, run.pk, 1, NONCE)
        run.refresh_from_db()
        assert run.state == RunState.FAILED
        assert "There is no secret api any more" in run.sentence

    def test_one_that_was_deleted_while_the_run_runs_ends_nothing(
        self, who: Principal, secret: Secret
    ) -> None:
        alpha, run = claimed(who)
        Run.objects.update(state=RunState.RUNNING)
        store.delete(who, secret)
        assert run_secrets.take(alpha.node, run.pk, 1, NONCE) == {}
        run.refresh_from_db()
        assert run.state == RunState.RUNNING

    def test_the_run_of_somebody_else_gets_their_secret(self, who: Principal, secret: Secret) -> None:
        alpha, run = claimed(who)
        other = make_person("other", Role.CONTRIBUTOR)
        Run.objects.update(created_by=other)
        with pytest.raises(claims.Refused, match="no secret api"):
            run_secrets.take(alpha.node, run.pk, 1, NONCE)


class TestOldNode:
    def test_gets_no_run_with_secrets_and_the_run_says_why_it_waits(
        self, who: Principal, secret: Secret
    ) -> None:
        old = node()
        Node.objects.filter(pk=old.pk).update(capabilities="")
        run = launched(who, environment_variables=VARIABLES)
        assert run.state == RunState.QUEUED
        assert "alpha cannot keep secrets: upgrade its agent" in run.events.latest("pk").message
        assert launched(who).state == RunState.PROVISIONING


class TestPreview:
    @staticmethod
    def messages(who: Principal) -> dict[str, str]:
        of_run = spec(who, environment_variables=VARIABLES)
        return {item.field: item.message for item in run_preview.preview(of_run, who).errors}

    def test_of_a_secret_that_is_not_there_names_those_that_are(self, who: Principal) -> None:
        node()
        assert "There are: none yet" in self.messages(who)["environment_variables.KEY"]
        store.put(who, "other", VALUE, store.PERSON)
        assert "There are: other" in self.messages(who)["environment_variables.KEY"]

    def test_of_one_that_is_there_has_the_name_in_the_plan(self, who: Principal, secret: Secret) -> None:
        node()
        of_run = spec(who, environment_variables=VARIABLES)
        preview = run_preview.preview(of_run, who)
        assert preview.errors == ()
        assert preview.plan is not None
        assert VALUE not in json.dumps(preview.plan.to_json())
        assert '"name": "api"' in json.dumps(preview.plan.to_json())

    def test_the_secret_of_another_workspace_is_not_there(self, who: Principal, secret: Secret) -> None:
        other = make_workspace("other")
        mallory = membership_principal(make_person("mallory", Role.OWNER, other), other)
        assert mallory is not None
        node()
        assert "There are: none yet" in self.messages(mallory)["environment_variables.KEY"]
