from __future__ import annotations

from typing import Any

import pytest
from django.test import Client

from clusters.models import Node
from jobs.models import Run
from jobs.states import RunState
from tests.api.asking import RUNS, post, refused, upload
from tests.jobs import builders
from tests.jobs.builders import zipped
from tests.people import client_of, make_stranger, make_viewer

Spec = dict[str, Any]


class TestSubmit:
    def test_makes_a_queued_run_and_says_where_it_is(self, api: Client, spec: Spec) -> None:
        answer = post(api, RUNS, spec)
        assert answer.status_code == 201
        body = answer.json()
        assert answer.headers["Location"] == f"/api/v1/runs/{body['id']}/"
        assert (body["number"], body["state"], body["created_by"]) == (1, "Queued", "carl")
        assert body["spec"]["source"] == spec["source"]

    def test_freezes_an_example(self, api: Client, node: Node) -> None:
        body = post(api, RUNS, {"source": {"type": "example", "name": "hello"}, "script": "hello.py"}).json()
        assert body["spec"]["source"]["type"] == "snapshot"


class TestIdempotencyKey:
    def test_a_retry_makes_no_second_run(self, api: Client, spec: Spec) -> None:
        first, second = (post(api, RUNS, spec, Idempotency_Key="nightly-1") for _ in range(2))
        assert (first.status_code, second.status_code) == (201, 200)
        assert first.json()["id"] == second.json()["id"]
        assert Run.objects.count() == 1

    def test_another_spec_with_the_same_key_is_a_conflict(self, api: Client, spec: Spec) -> None:
        post(api, RUNS, spec, Idempotency_Key="nightly-1")
        answer = post(api, RUNS, {**spec, "arguments": ["--epochs", 2]}, Idempotency_Key="nightly-1")
        refused(
            answer, 409, "Idempotency-Key", "was used before, for run 1 with another spec; choose a new key"
        )

    def test_without_a_key_every_post_is_a_run(self, api: Client, spec: Spec) -> None:
        post(api, RUNS, spec)
        post(api, RUNS, spec)
        assert Run.objects.count() == 2

    @pytest.mark.parametrize("key", ["", "k" * 129])
    def test_has_a_length(self, api: Client, spec: Spec, key: str) -> None:
        refused(
            post(api, RUNS, spec, Idempotency_Key=key),
            400,
            "Idempotency-Key",
            "must have 1 to 128 characters",
        )


class TestClonedFrom:
    @pytest.mark.parametrize("name", ["id", "number"])
    def test_the_new_run_names_its_original(self, api: Client, spec: Spec, name: str) -> None:
        original = post(api, RUNS, spec).json()
        assert original["cloned_from"] is None
        cloned_spec = post(api, f"{RUNS}{original[name]}/clone/", {}).json()
        clone = post(api, f"{RUNS}?cloned_from={original[name]}", cloned_spec).json()
        assert clone["cloned_from"] == original["id"]
        assert api.get(f"{RUNS}{clone['id']}/").json()["cloned_from"] == original["id"]

    @pytest.mark.parametrize("name", ["7", "f" * 32, "%00", ""])
    def test_an_unknown_run_is_refused(self, api: Client, spec: Spec, name: str) -> None:
        answer = post(api, f"{RUNS}?cloned_from={name}", spec)
        assert answer.status_code == 400
        assert answer.json()["errors"][0]["field"] == "cloned_from"
        assert not Run.objects.exists()


class TestPreview:
    def test_shows_the_plan_as_json_and_printed_and_changes_nothing(
        self, viewer_api: Client, spec: Spec
    ) -> None:
        body = post(viewer_api, f"{RUNS}preview/", {**spec, "distribution": builders.processes(2)}).json()
        assert body["ok"] is True
        assert [process["rank"] for process in body["plan"]["commands"][0]["processes"]] == [0, 1]
        assert body["printed"].startswith("pytorch: 2 processes on 1 node")
        assert not Run.objects.exists()

    def test_lists_every_finding_with_its_field(self, api: Client, spec: Spec) -> None:
        body = post(
            api, f"{RUNS}preview/", {**spec, "script": "nowhere.py", "environment": {"name": "Conda"}}
        ).json()
        assert body["ok"] is False
        wrong = {finding["field"] for finding in body["findings"] if finding["level"] == "error"}
        assert {"script", "environment.name"} <= wrong

    def test_keeps_token_and_run_id_for_the_launch(self, api: Client, spec: Spec) -> None:
        body = post(api, f"{RUNS}preview/", spec).json()
        env = body["plan"]["commands"][0]["processes"][0]["env"]
        assert env["TRAINHUB_TOKEN"] == {"kind": "launch", "name": "token"}
        assert "TRAINHUB_TOKEN=<assigned at launch>" in body["printed"].replace(" = ", "=").replace("  ", "")


WRONG: list[tuple[Spec, str, str]] = [
    ({"script": ""}, "script", "name the script to run"),
    ({"script": "nowhere.py"}, "script", "nowhere.py"),
    ({"script": "../train.py"}, "script", ""),
    (
        {"command": ["python", "train.py"]},
        "command",
        "give either a script with arguments, or a command, not both",
    ),
    ({"arguments": "--epochs 3"}, "arguments", "must be a list, one item per argument (never a shell line)"),
    ({"environment": {"name": "Conda"}}, "environment.name", "no environment is called 'Conda'; there are: "),
    ({"environment": {"version": "2.7"}}, "environment.version", "2.7"),
    (
        {"distribution": {"type": "horovod"}},
        "distribution.type",
        "'horovod' is not known; use 'pytorch', 'mpi'",
    ),
    (
        {"distribution": {"type": "mpi", "process_count_per_node": 0}},
        "distribution.process_count_per_node",
        "between 1 and 4096",
    ),
    (
        {"distribution": {"type": "pytorch", "process_count": 5000}},
        "distribution.process_count",
        "between 1 and 4096, not 5000",
    ),
    (
        {"distribution": {"type": "pytorch", "process_count": 3, "node_count": 2}},
        "distribution.process_count",
        "",
    ),
    (
        {"distribution": {"type": "tensorflow", "worker_count": True}},
        "distribution.worker_count",
        "must be a whole number",
    ),
    (
        {"resources": {"cluster": "moon"}},
        "resources.cluster",
        "there is no cluster 'moon' here; there are: local",
    ),
    ({"resources": {"gpus_per_node": 4}}, "resources.gpus_per_node", "alpha comes nearest"),
    ({"resources": {"gpus_per_node": 65}}, "resources.gpus_per_node", "must be between 0 and 64, not 65"),
    ({"resources": {"node_count": 2}}, "resources.node_count", "needs a distribution"),
    ({"limits": {"timeout_s": 0}}, "limits.timeout_s", "must be between 1"),
    (
        {"environment_variables": {"RANK": "3"}, "distribution": builders.processes(2)},
        "environment_variables.RANK",
        "",
    ),
    (
        {"environment_variables": {"BAD NAME": "1"}},
        "environment_variables.BAD NAME",
        "is not a variable name",
    ),
    ({"source": {"type": "snapshot", "id": "0" * 64}}, "source.id", "no such snapshot in this workspace"),
    (
        {"source": {"type": "example", "name": "nothing"}},
        "source.name",
        "there is no example 'nothing'; there are:",
    ),
    ({"source": {"type": "local", "path": "/etc"}}, "source.type", "'local' is not a kind of source"),
    ({"scirpt": "train.py"}, "scirpt", "is not a known field; known fields:"),
    ({"display_name": "x" * 201}, "display_name", "at most 200"),
    ({"experiment": "../x"}, "experiment", "use letters"),
    ({"display_name": "half a \ud800 character"}, "display_name", "is not valid Unicode"),
    ({"display_name": "nul \x00"}, "display_name", "must not contain a NUL character"),
]


class TestBadSpecs:
    @pytest.mark.parametrize(
        ("change", "field", "words"),
        WRONG,
        ids=[f"{field}-{number}" for number, (_, field, _) in enumerate(WRONG)],
    )
    def test_are_refused_at_the_field_with_a_remedy(
        self, api: Client, spec: Spec, change: Spec, field: str, words: str
    ) -> None:
        refused(post(api, RUNS, {**spec, **change}), 400, field, words)
        assert not Run.objects.exists()

    def test_name_all_that_is_wrong_at_once(self, api: Client, spec: Spec) -> None:
        answer = post(api, RUNS, {**spec, "script": "nowhere.py", "environment": {"name": "Conda"}})
        assert {error["field"] for error in answer.json()["errors"]} >= {"script", "environment.name"}

    @pytest.mark.parametrize(
        "body", ["[]", '"text"', "null", "{", "", '{"a": NaN}', "[" * 100_000, "1" * 6000]
    )
    def test_are_refused_when_they_are_no_json_object(self, api: Client, body: str) -> None:
        answer = api.post(RUNS, body, "application/json")
        assert (answer.status_code, answer.headers["Content-Type"]) == (400, "application/problem+json")

    def test_are_refused_as_a_list_of_what_is_no_text(self, api: Client) -> None:
        refused(api.post(RUNS, '["\\ud800"]', "application/json"), 400, "spec", "is not valid Unicode text")

    def test_are_refused_as_forms(self, api: Client) -> None:
        assert api.post(RUNS, {"script": "train.py"}).status_code == 415

    def test_more_than_a_spec_can_be_is_refused(self, api: Client, spec: Spec) -> None:
        assert post(api, RUNS, {**spec, "arguments": ["x" * 9_000_000]}).status_code == 413


class TestWhoMay:
    def test_a_viewer_learns_the_needed_role(self, viewer_api: Client, spec: Spec) -> None:
        answer = post(viewer_api, RUNS, spec)
        assert answer.status_code == 403
        assert answer.json()["detail"].startswith(
            "This needs the role contributor; you are viewer of Default."
        )

    def test_a_stranger_finds_nothing(self, spec: Spec) -> None:
        for path in (RUNS, f"{RUNS}preview/"):
            assert post(client_of(make_stranger()), path, spec).status_code == 404

    def test_nobody_is_asked_for_a_token(self, spec: Spec) -> None:
        assert post(Client(), RUNS, spec).status_code == 401

    def test_a_browser_needs_the_csrf_token(self, spec: Spec) -> None:
        assert post(client_of(make_viewer(), csrf=True), RUNS, spec).status_code == 403


def test_states_in_answers_are_those_of_the_table(api: Client, spec: Spec) -> None:
    assert post(api, RUNS, spec).json()["state"] in set(RunState)


class TestFindings:
    def test_a_submitted_run_comes_with_the_findings_of_its_preview(self, api: Client, spec: Spec) -> None:
        code = zipped({"train.py": "print(1)", "requirements.txt": "pandas"}).getvalue()
        doubtful = {**spec, "source": {"type": "snapshot", "id": upload(api, code).json()["id"]}}
        previewed = post(api, f"{RUNS}preview/", doubtful).json()
        answer = post(api, RUNS, doubtful)
        assert answer.status_code == 201, answer.content
        assert answer.json()["findings"] == previewed["findings"] != []

    def test_all_wrong_fields_are_named_at_once(self, api: Client, spec: Spec) -> None:
        wrong = {**spec, "limits": {"timeout_s": 0, "retries": -1}, "resources": {"gpus_per_node": 64}}
        answer = post(api, RUNS, {**wrong, "script": "trian.py"})
        refused(answer, 400, "limits.timeout_s", "must be")
        fields = [error["field"] for error in answer.json()["errors"]]
        assert set(fields) >= {"limits.timeout_s", "limits.retries", "resources.gpus_per_node", "script"}
        assert len(fields) == len(set(fields))

    def test_a_missing_required_field_ends_the_list(self, api: Client) -> None:
        answer = post(api, RUNS, {"priority": 99, "script": "train.py"})
        assert [error["field"] for error in answer.json()["errors"]] == ["source.type"]
