"""The pages and the API of rules, and what pages and the API say where data was removed."""

from __future__ import annotations

from typing import Any

import httpx
import pytest
from django.test import Client

from jobs.models import Artifact, RetentionRule
from jobs.retention_rules import removal_round
from jobs.retention_rules.rules import Rule
from jobs.states import DataKind
from tests.jobs.retention_rules.rules_of import LOG, after_grace, old_run, set_rule
from tests.people import (
    api_client,
    client_of,
    make_contributor,
    make_operator,
    make_owner,
    principal_of,
    token_of,
)
from workspaces.access import Principal

pytestmark = pytest.mark.usefixtures("valkey")


def form(**changes: str) -> dict[str, str]:
    fields = {f"{kind}-mode": "hub" for kind in DataKind}
    return fields | {name.replace("__", "-"): value for name, value in changes.items()}


class TestPage:
    def test_an_owner_previews_confirms_and_cancels(self, who: Principal) -> None:
        run = old_run(who)
        page = client_of(who.user)
        rules = form(logs__mode="remove", logs__days="30")
        preview = page.post("/retention/", rules)
        assert preview.status_code == 200
        assert f'href="/runs/{run.number}/"' in preview.content.decode()
        assert not RetentionRule.objects.exists()
        confirmation = preview.context["preview"].confirmation
        saved = page.post("/retention/", rules | {"confirmation": confirmation}, follow=True)
        assert "Stricter rules wait" in saved.content.decode()
        assert "A stricter rule waits." in page.get("/settings/").content.decode()
        canceled = page.post("/retention/cancel/", follow=True)
        assert "Stricter rules wait" not in canceled.content.decode()

    def test_bad_input_is_said_at_its_field(self, who: Principal) -> None:
        page = client_of(who.user)
        empty = page.post("/retention/", form(logs__mode="remove"))
        assert (empty.status_code, empty.context["forms"][0].errors["days"]) == (
            400,
            ["Enter a number of days."],
        )
        zero = page.post("/retention/", form(outputs__mode="remove", outputs__days="0"))
        assert zero.status_code == 400
        assert zero.context["forms"][1].errors["days"] == ["Must be a whole number of days from 1 to 36500."]
        stale = page.post("/retention/", form(logs__mode="remove", logs__days="30", confirmation="x"))
        assert stale.status_code == 400
        assert "confirmation: is missing, older than an hour" in stale.content.decode()

    def test_a_member_sees_and_cannot_change(self, who: Principal) -> None:
        page = client_of(make_contributor())
        assert "Owners of the workspace change these rules." in page.get("/retention/").content.decode()
        assert page.post("/retention/", form(logs__mode="remove", logs__days="30")).status_code == 403
        assert page.post("/retention/cancel/").status_code == 403
        assert page.get("/retention/hub/").status_code == 403

    def test_an_operator_sets_those_of_all(self, who: Principal) -> None:
        old_run(who)
        page = client_of(make_operator())
        fields = {f"{kind}-mode": "keep" for kind in DataKind} | {
            "logs-mode": "remove",
            "logs-days": "30",
            "logs-least_days": "10",
        }
        preview = page.post("/retention/hub/", fields)
        assert preview.context["preview"].kinds[0].count == 1
        page.post("/retention/hub/", fields | {"confirmation": preview.context["preview"].confirmation})
        rule = RetentionRule.objects.get()
        assert (rule.workspace, rule.days, rule.least_days) == (None, 30, 10)


class TestApi:
    def test_preview_set_show_and_cancel(self, who: Principal) -> None:
        run = old_run(who)
        api = api_client(who.user)
        body: dict[str, Any] = {"rules": [{"kind": "logs", "days": 30}]}
        refused = api.put("/api/v1/retention/", body, "application/json")
        assert refused.status_code == 400
        assert refused.json()["errors"][0]["field"] == "confirmation"
        preview = api.post("/api/v1/retention/preview/", body, "application/json").json()
        (logs,) = preview["kinds"]
        assert (logs["count"], logs["size_bytes"], logs["runs"][0]["id"]) == (1, 9, run.pk)
        body["confirmation"] = preview["confirmation"]
        rules = api.put("/api/v1/retention/", body, "application/json").json()["rules"]
        assert rules[0]["waiting"]["days"] == 30
        assert rules[1]["in_force"]["words"] == "kept for ever"
        assert api.get("/api/v1/retention/").json()["rules"] == rules
        assert api.post("/api/v1/retention/cancel/").json()["rules"][0]["waiting"] is None

    @pytest.mark.parametrize(
        ("rules", "field"),
        [
            ([], "rules"),
            ([{"kind": "logs"}, {"kind": "logs"}], "rules"),
            ([{"kind": "models"}], "rules.0.kind"),
            ([{"kind": "logs", "days": 0}], "logs.days"),
        ],
    )
    def test_bad_input_names_the_field(self, who: Principal, rules: list[Any], field: str) -> None:
        answer = api_client(who.user).post("/api/v1/retention/preview/", {"rules": rules}, "application/json")
        assert answer.status_code == 400
        assert answer.json()["errors"][0]["field"] == field

    def test_a_member_reads_only(self, who: Principal) -> None:
        api = api_client(make_contributor())
        body = {"rules": [{"kind": "logs", "days": 30}]}
        assert api.get("/api/v1/retention/").status_code == 200
        assert api.put("/api/v1/retention/", body, "application/json").status_code == 403
        assert api.post("/api/v1/retention/preview/", body, "application/json").status_code == 403
        assert api.put("/api/v1/retention/hub/", body, "application/json").status_code == 403

    def test_an_operator_sets_those_of_all(self, who: Principal) -> None:
        api = api_client(make_operator())
        body: dict[str, Any] = {"rules": [{"kind": "outputs", "days": 90, "most_days": 365}]}
        preview = api.post("/api/v1/retention/hub/preview/", body, "application/json").json()
        body["confirmation"] = preview["confirmation"]
        rules = api.put("/api/v1/retention/hub/", body, "application/json").json()["rules"]
        assert [rule["hub"]["most_days"] for rule in rules] == [None, 365, None, None]
        assert api.get("/api/v1/retention/hub/").json()["rules"] == rules


@pytest.mark.django_db(transaction=True)
class TestWhatIsSaid:
    """Where the data was."""

    async def test_logs_and_outputs_are_gone_with_a_sentence(self, client: httpx.AsyncClient) -> None:
        run, token = await _removed_run()
        headers = {"authorization": f"Bearer {token}"}
        for path, words in (
            (f"logs/{LOG}", "The logs of this run were removed on "),
            (f"logs/{LOG}?download=1", "The logs of this run were removed on "),
            ("outputs/model.pt", "The outputs of this run were removed on "),
        ):
            answer = await client.get(f"/api/v1/runs/{run}/{path}", headers=headers)
            assert answer.status_code == 410
            assert answer.json()["detail"].startswith(words)


async def _removed_run() -> tuple[str, str]:
    from asgiref.sync import sync_to_async

    def make() -> tuple[str, str]:
        who = principal_of(make_owner())
        run = old_run(who)
        set_rule(who.workspace, who.user, Rule(30))
        removal_round.remove_due(after_grace())
        return run.pk, token_of(who.user)

    return await sync_to_async(make)()


class TestWhatTheRunSays:
    def test_each_tab_and_the_lists_say_it(self, who: Principal) -> None:
        run = old_run(who)
        page: Client = client_of(who.user)
        assert "were removed on" not in page.get(f"/runs/{run.number}/logs/").content.decode()
        set_rule(who.workspace, who.user, Rule(30))
        removal_round.remove_due(after_grace())
        for tab, words in {
            "logs": "The logs of this run were removed on ",
            "outputs": "The outputs of this run were removed on ",
            "checkpoints": "The outputs of this run were removed on ",
            "metrics": "The metric points of this run were removed on ",
            "gpus": "The telemetry of this run was removed on ",
        }.items():
            answer = page.get(f"/runs/{run.number}/{tab}/")
            assert answer.status_code == 200
            assert words in answer.content.decode()
        api = api_client(who.user)
        detail = api.get(f"/api/v1/runs/{run.number}/").json()
        assert [item["kind"] for item in detail["removed"]] == ["logs", "metrics", "outputs", "telemetry"]
        assert api.get(f"/api/v1/runs/{run.number}/logs/").json()["removed"].startswith("The logs")
        assert api.get(f"/api/v1/runs/{run.number}/outputs/").json() == {
            "attempt": 1,
            "outputs": [],
            "removed": detail["removed"][2]["sentence"],
        }
        assert not Artifact.objects.exists()

    def test_whoever_wants_to_go_on_from_it_is_told(self, who: Principal) -> None:
        run = old_run(who)
        set_rule(who.workspace, who.user, Rule(30))
        removal_round.remove_due(after_grace())
        api = api_client(who.user)
        model = api.post(
            "/api/v1/models/net/versions/", {"run": run.pk, "path": "model.pt"}, "application/json"
        )
        assert model.status_code == 400
        assert "outputs of this run were removed on" in model.json()["detail"]
        dataset = api.post(
            f"/api/v1/runs/{run.pk}/datasets/", {"name": "set", "path": ""}, "application/json"
        )
        assert "outputs of this run were removed on" in dataset.json()["detail"]
