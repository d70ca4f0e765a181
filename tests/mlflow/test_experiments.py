"""Experiments over the protocol: which calls are refused, and how experiments are searched."""

from __future__ import annotations

from typing import Any

import pytest
from asgiref.sync import sync_to_async

from jobs.models import Experiment, Run
from jobs.retention.deletion import PURGE_STARTED
from tests.mlflow.raw import MlflowCaller, job_with_token

INVALID = "INVALID_PARAMETER_VALUE"
MISSING = "RESOURCE_DOES_NOT_EXIST"


async def names(me: MlflowCaller, **args: Any) -> list[str]:
    page = await me.call("experiments/search", args)
    return [row["name"] for row in page.get("experiments", [])]


class TestARefusal:
    @pytest.mark.parametrize(
        ("path", "args", "words"),
        [
            ("experiments/update", {"new_name": "fish"}, "Cannot rename a non-active experiment"),
            ("experiments/set-experiment-tag", {"key": "a", "value": "1"}, "must be in the 'active' state"),
            ("runs/create", {}, "must be in the 'active' state"),
            ("logged-models", {"name": "net"}, "must be in the 'active' state"),
        ],
    )
    async def test_meets_those_who_change_a_deleted_experiment(
        self, me: MlflowCaller, path: str, args: dict[str, str], words: str
    ) -> None:
        birds = await me.call("experiments/create", {"name": "birds"})
        await me.call("experiments/delete", birds)
        error = await me.expect_error(path, birds | args)
        assert (error.status, error.code) == (400, INVALID)
        assert words in error.message
        experiment = (await me.call("experiments/get", birds))["experiment"]
        assert (experiment["name"], "tags" in experiment) == ("birds", False)

    async def test_keeps_two_experiments_from_one_name(self, me: MlflowCaller) -> None:
        await me.call("experiments/create", {"name": "birds"})
        fish = await me.call("experiments/create", {"name": "fish"})
        error = await me.expect_error("experiments/update", fish | {"new_name": "birds"})
        assert (error.code, error.message) == (
            "RESOURCE_ALREADY_EXISTS",
            "Experiment(name=birds) already exists.",
        )
        await me.call("experiments/update", fish | {"new_name": "whales"})
        assert (await me.call("experiments/get", fish))["experiment"]["name"] == "whales"

    async def test_meets_a_second_deletion_and_a_second_restore(self, me: MlflowCaller) -> None:
        birds = await me.call("experiments/create", {"name": "birds"})
        for verb in ("delete", "restore"):
            await me.call(f"experiments/{verb}", birds)
            error = await me.expect_error(f"experiments/{verb}", birds)
            assert (error.status, error.code) == (404, MISSING)
            assert f"No Experiment with id={birds['experiment_id']} exists" in error.message

    async def test_keeps_an_experiment_whose_job_runs(self, me: MlflowCaller) -> None:
        run, _ = await job_with_token(experiment="birds")
        error = await me.expect_error("experiments/delete", {"experiment_id": str(run.experiment_id)})
        assert (error.status, error.code) == (400, INVALID)
        assert "cancel it before you delete it" in error.message
        experiment = await Experiment.objects.aget(pk=run.experiment_id)
        assert experiment.deleted_at is None

    async def test_meets_the_restore_of_an_experiment_that_is_being_purged(self, me: MlflowCaller) -> None:
        birds = await me.call("experiments/create", {"name": "birds"})
        await Experiment.objects.filter(name="birds").aupdate(deleted_at=PURGE_STARTED)
        error = await me.expect_error("experiments/restore", birds)
        assert (error.status, error.code) == (400, INVALID)
        assert "can no longer be restored" in error.message

    async def test_meets_one_tag_too_many(self, me: MlflowCaller, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("tracking.mlflow.experiments.MAX_TAGS", 1)
        birds = await me.call("experiments/create", {"name": "birds", "tags": [{"key": "a", "value": "1"}]})
        path = "experiments/set-experiment-tag"
        error = await me.expect_error(path, birds | {"key": "b", "value": "1"})
        assert (error.code, "may have 1 tags" in error.message) == (INVALID, True)
        await me.call(path, birds | {"key": "a", "value": "2"})
        tags = (await me.call("experiments/get", birds))["experiment"]["tags"]
        assert tags == [{"key": "a", "value": "2"}]

    async def test_meets_the_deletion_of_a_tag_that_is_not_there(self, me: MlflowCaller) -> None:
        birds = await me.call("experiments/create", {"name": "birds"})
        error = await me.expect_error("experiments/delete-experiment-tag", birds | {"key": "team"})
        assert (error.status, error.code) == (404, MISSING)
        assert "No tag with name: team" in error.message

    async def test_meets_a_job_whose_submitter_is_gone_when_it_deletes(self, me: MlflowCaller) -> None:
        """The audit log needs a person."""
        run, token = await job_with_token()
        await Run.objects.filter(pk=run.pk).aupdate(created_by=None)
        job = MlflowCaller(me.client, token)
        child = await job.run()
        error = await job.expect_error("runs/delete", {"run_id": child})
        assert (error.status, error.code) == (403, "PERMISSION_DENIED")
        assert "account that submitted this job was deleted" in error.message
        assert (await Run.objects.aget(pk=child)).deleted_at is None


class TestSearch:
    @pytest.fixture
    async def me(self, me: MlflowCaller) -> MlflowCaller:
        tags = [{"key": "team", "value": "vision"}]
        await me.call("experiments/create", {"name": "birds", "tags": tags})
        await me.call("experiments/create", {"name": "fish"})
        return me

    @pytest.mark.parametrize(
        ("text", "expected"),
        [
            ("tags.team IS NULL", ["default", "fish"]),
            ("tags.team IS NOT NULL", ["birds"]),
            ("name IN ('birds', 'fish')", ["birds", "fish"]),
            ("name != 'default' AND tags.team NOT IN ('speech')", ["birds"]),
            ("creation_time > 5 AND name LIKE '%i%'", ["birds", "fish"]),
        ],
    )
    async def test_compares_attributes_and_tags(
        self, me: MlflowCaller, text: str, expected: list[str]
    ) -> None:
        assert await names(me, filter=text, order_by=["name ASC"]) == expected

    async def test_goes_page_by_page(self, me: MlflowCaller) -> None:
        first = await me.call("experiments/search", {"max_results": 2, "order_by": ["name DESC"]})
        assert [row["name"] for row in first["experiments"]] == ["fish", "default"]
        token = first["next_page_token"]
        assert await names(me, max_results=2, order_by=["name DESC"], page_token=token) == ["birds"]

    @pytest.mark.parametrize(
        ("text", "words"),
        [
            ("name IN 'birds'", "Expected ( before the list of values"),
            ("name IN ('birds' 'fish')", "Expected , or )"),
            ("name IN (5)", "Expected text in quotes"),
            ("params.lr = '1'", "'params' is not a kind of key; use attributes, tags"),
            ("colour = 'red'", "'colour' is not an attribute; use name"),
            ("= 'birds'", "Expected one of name"),
            ("creation_time > 'noon'", "Expected a number"),
            ("name = 'birds' OR name = 'fish'", "Expected AND, or the end"),
        ],
    )
    async def test_names_what_is_wrong_in_a_filter(self, me: MlflowCaller, text: str, words: str) -> None:
        error = await me.expect_error("experiments/search", {"filter": text})
        assert (error.status, error.code) == (400, INVALID)
        assert error.message.startswith("Invalid filter: ")
        assert words in error.message

    @pytest.mark.parametrize(
        ("orders", "words"),
        [
            (["tags.team"], "rows cannot be ordered by tags; use name"),
            (["name", "name DESC"], "name is given twice"),
            (["name sideways"], "Expected ASC or DESC"),
        ],
    )
    async def test_names_what_is_wrong_in_an_order(
        self, me: MlflowCaller, orders: list[str], words: str
    ) -> None:
        error = await me.expect_error("experiments/search", {"order_by": orders})
        assert (error.status, error.code) == (400, INVALID)
        assert error.message.startswith("Invalid order_by: ")
        assert words in error.message

    @pytest.mark.parametrize("token", ["nonsense", "bm8gSlNPTg==", "W10=", "eyJvZmZzZXQiOiB0cnVlfQ=="])
    async def test_refuses_a_page_token_of_somebody_else(self, me: MlflowCaller, token: str) -> None:
        error = await me.expect_error("experiments/search", {"page_token": token})
        assert (error.code, error.message.startswith("Invalid page token")) == (INVALID, True)


async def test_a_job_that_sets_its_own_experiment_takes_back_another_that_it_has_set(
    me: MlflowCaller,
) -> None:
    run, token = await job_with_token(experiment="birds")
    job = MlflowCaller(me.client, token)
    for name in ("fish", "fish"):
        await job.call("experiments/get-by-name", {"experiment_name": name})

    def tags_and_wishes() -> tuple[list[str], int]:
        wishes = run.events.filter(message__contains="The script set the experiment 'fish'")
        tags = run.tags.filter(key="mlflow.client.experiment")
        return list(tags.values_list("value", flat=True)), wishes.count()

    assert await sync_to_async(tags_and_wishes)() == (["fish"], 1)
    await job.call("experiments/get-by-name", {"experiment_name": "birds"})
    assert await sync_to_async(tags_and_wishes)() == ([], 1)
