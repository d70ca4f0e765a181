"""MlflowClient: every call of the tracking API that is not about files."""

from __future__ import annotations

from typing import Any

import pytest

from tests.mlflow.conftest import ClientRunner

pytestmark = pytest.mark.slow

SCRIPT = """
from mlflow.entities import Metric, Param, RunTag, ViewType
from mlflow.entities import LoggedModelInput, LoggedModelOutput, LoggedModelParameter, LoggedModelStatus

one = client.create_experiment("one", tags={"team": "vision"})
two = client.create_experiment("two")
out["twice"] = error_of(client.create_experiment, "one")
out["nameless"] = error_of(client.create_experiment, " ")
out["elsewhere"] = error_of(client.create_experiment, "three", artifact_location="s3://bucket")
client.set_experiment_tag(two, "team", "speech")
client.set_experiment_tag(two, "gone", "1")
client.delete_experiment_tag(two, "gone")
out["no tag"] = error_of(client.delete_experiment_tag, two, "gone")
client.rename_experiment(two, "second")
names = lambda found: [row.name for row in found]
out["named"] = names(client.search_experiments(filter_string="name = 'one'"))
out["like"] = names(client.search_experiments(filter_string="name LIKE 'sec%'"))
out["ilike"] = names(client.search_experiments(filter_string="name ILIKE 'SEC%' and tags.team = 'speech'"))
out["tagged"] = names(client.search_experiments(filter_string="tags.team != 'x'", order_by=["name ASC"]))
out["by name"] = names(client.search_experiments(filter_string="tags.team IS NOT NULL",
    order_by=["name DESC"]))
page = client.search_experiments(max_results=1, order_by=["experiment_id ASC"],
    filter_string="tags.team IS NOT NULL")
rest = client.search_experiments(max_results=1, order_by=["experiment_id ASC"],
    filter_string="tags.team IS NOT NULL",
    page_token=page.token)
out["pages"] = [names(page), names(rest), rest.token]
out["bad filter"] = error_of(client.search_experiments, filter_string="name ~ 'x'")
out["bad order"] = error_of(client.search_experiments, order_by=["colour"])
client.delete_experiment(two)
out["deleted"] = [names(client.search_experiments(view_type=ViewType.DELETED_ONLY)),
    client.get_experiment(two).lifecycle_stage]
out["into deleted"] = error_of(client.create_run, two)
client.restore_experiment(two)
out["restored"] = client.get_experiment(two).lifecycle_stage
out["unknown"] = error_of(client.get_experiment, "987654321")
out["no number"] = error_of(client.get_experiment, "a-b")

run = client.create_run(one, start_time=1_600_000_000_000, tags={"mlflow.runName": "old", "x": "1"}).info
out["run"] = [run.run_name, run.status, run.start_time, run.end_time, run.experiment_id == one]
now = 1_600_000_000_000
client.log_batch(run.run_id,
    metrics=[Metric("loss", 1 / (step + 1), now + step, step) for step in range(900)],
    params=[Param(f"p{number}", str(number)) for number in range(50)], tags=[RunTag(f"t{number}",
        "v") for number in range(50)])
out["history"] = [len(client.get_metric_history(run.run_id, "loss")),
    client.get_run(run.run_id).data.metrics["loss"] * 900]
pages, token = [], None
while True:
    found = client._tracking_client.store.get_metric_history(run.run_id, "loss", max_results=400,
        page_token=token)
    pages.append(len(found))
    token = found.token
    if not token:
        break
out["history pages"] = pages
out["no metric"] = client.get_metric_history(run.run_id, "nothing")
store = client._tracking_client.store
many = lambda count: [Metric(f"m{number}", 1.0, now, 0) for number in range(count)]
out["1001 metrics"] = error_of(store.log_batch, run.run_id, many(1001), [], [])
out["101 params"] = error_of(store.log_batch, run.run_id, [], [Param(f"q{number}",
    "1") for number in range(101)], [])
out["101 tags"] = error_of(store.log_batch, run.run_id, [], [], [RunTag(f"q{number}",
    "1") for number in range(101)])
out["1000 and 1"] = error_of(store.log_batch, run.run_id, many(1000), [Param("q", "1")], [])
out["same param twice"] = error_of(store.log_batch, run.run_id, [], [Param("q", "1"), Param("q", "1")], [])
out["half"] = error_of(store.log_batch, run.run_id, many(3), [Param("fresh", "1"), Param("p1", "other")],
    [RunTag("half", "1")])
left = client.get_run(run.run_id).data
out["nothing of it"] = ["fresh" in left.params, "half" in left.tags, "m0" in left.metrics]
out["bad key"] = error_of(store.log_metric, run.run_id, Metric("a$b", 1.0, now, 0))
out["path key"] = error_of(store.log_param, run.run_id, Param("../up", "1"))
client.log_param(run.run_id, "long", "x" * 7000)
client.set_tag(run.run_id, "long", "x" * 9000)
cut = client.get_run(run.run_id).data
out["cut"] = [len(cut.params["long"]), len(cut.tags["long"])]
out["unknown run"] = error_of(client.log_metric, "f" * 32, "loss", 1.0)
out["no such tag"] = error_of(client.delete_tag, run.run_id, "nothing")
client.update_run(run.run_id, status="SCHEDULED", name="newer")
out["renamed"] = [client.get_run(run.run_id).info.run_name,
    client.get_run(run.run_id).data.tags["mlflow.runName"]]
client.set_terminated(run.run_id, "FAILED", end_time=now + 5000)
ended = client.get_run(run.run_id).info
out["ended"] = [ended.status, ended.end_time]
client.delete_run(run.run_id)
out["gone"] = [len(client.search_runs([one])), len(client.search_runs([one],
    run_view_type=ViewType.DELETED_ONLY)),
    len(client.search_runs([one], run_view_type=ViewType.ALL))]
client.restore_run(run.run_id)
out["back"] = client.get_run(run.run_id).info.lifecycle_stage

for number in range(7):
    made = client.create_run(one, run_name=f"r{number}").info.run_id
    client.log_metric(made, "acc", number / 10)
    client.log_param(made, "seed", number)
    client.set_tag(made, "group", "even" if number % 2 == 0 else "odd")
search = lambda text="", **more: [row.info.run_name for row in client.search_runs([one], text, **more)]
out["by metric"] = search("metrics.acc >= 0.4", order_by=["metrics.acc DESC"])
out["by param"] = search("params.seed IN ('1', '3')", order_by=["params.seed ASC"])
out["by tag"] = search("tags.group = 'odd' and attributes.run_name LIKE 'r%'",
    order_by=["attributes.run_name ASC"])
out["by status"] = len(search("attributes.status = 'RUNNING'"))
out["or"] = search("metrics.acc = 0.1 OR metrics.acc = 0.2", order_by=["metrics.acc ASC"])
out["bad search"] = error_of(client.search_runs, [one], "metrics.acc >> 1")
found, token = [], None
while True:
    rows = client.search_runs([one], "tags.group LIKE '%'", max_results=3, page_token=token,
        order_by=["params.seed ASC"])
    found.append([row.data.params["seed"] for row in rows])
    token = rows.token
    if not token:
        break
out["search pages"] = found
out["bad token"] = error_of(client.search_runs, [one], page_token="nonsense")

model = client.create_logged_model(one, name="net", source_run_id=made, tags={"a": "1"},
    params={"lr": "0.1"}, model_type="agent")
out["model"] = [model.name, str(model.status), model.source_run_id == made, model.tags, model.params,
    model.model_type,
    model.artifact_location == f"mlflow-artifacts:/{one}/models/{model.model_id}/artifacts"]
out["model name"] = error_of(client.create_logged_model, one, name="a/b")
store.log_logged_model_params(model.model_id, [LoggedModelParameter(f"p{number}",
    "1") for number in range(150)])
client.set_logged_model_tags(model.model_id, {"b": "2"})
client.delete_logged_model_tag(model.model_id, "a")
client.log_metric(made, "score", 0.75, model_id=model.model_id, dataset_name="d", dataset_digest="0f")
client.log_batch(made, metrics=[Metric("score2", 0.5, now, 1, model_id=model.model_id)])
client.finalize_logged_model(model.model_id, LoggedModelStatus.READY)
again = client.get_logged_model(model.model_id)
out["model now"] = [str(again.status), again.tags, len(again.params),
    [[metric.key, metric.value, metric.dataset_name] for metric in again.metrics]]
other = client.create_logged_model(one, name="other")
find = lambda text=None, **more: [row.name for row in client.search_logged_models([one], text, **more)]
out["models"] = find()
out["models named"] = find("name = 'net'")
out["models by metric"] = find("metrics.score > 0.5 AND params.lr = '0.1'")
out["models by tag"] = find("tags.b LIKE '2%'")
out["models ordered"] = find(order_by=[{"field_name": "metrics.score", "ascending": False}])
out["models on data"] = find(datasets=[{"dataset_name": "d"}])
first = client.search_logged_models([one], max_results=1)
out["model pages"] = [len(first), len(client.search_logged_models([one], max_results=1,
    page_token=first.token))]
client.log_outputs(made, [LoggedModelOutput(model.model_id, 3)])
client.log_inputs(made, models=[LoggedModelInput(other.model_id)])
whole = client.get_run(made)
out["outputs"] = [[row.model_id == model.model_id, row.step] for row in whole.outputs.model_outputs]
out["model inputs"] = [row.model_id == other.model_id for row in whole.inputs.model_inputs]
client.delete_logged_model(other.model_id)
out["no model"] = error_of(client.get_logged_model, other.model_id)
out["traces"] = error_of(client.search_traces, locations=[one])
out["dataset"] = error_of(client.create_dataset, "evaluation")
"""


@pytest.fixture(scope="module")
def results(client: ClientRunner) -> dict[str, Any]:
    return client(SCRIPT)


class TestExperiments:
    def test_have_names_of_their_own(self, results: dict[str, Any]) -> None:
        code, message = results["twice"]
        assert (code, "Experiment(name=one) already exists" in message) == ("RESOURCE_ALREADY_EXISTS", True)
        assert results["nameless"][0] == results["elsewhere"][0] == "INVALID_PARAMETER_VALUE"

    def test_are_found_by_name_and_tags(self, results: dict[str, Any]) -> None:
        assert (results["named"], results["like"], results["ilike"]) == (["one"], ["second"], ["second"])
        assert results["tagged"] == ["one", "second"]
        assert results["by name"] == ["second", "one"]

    def test_come_page_by_page(self, results: dict[str, Any]) -> None:
        assert results["pages"] == [["one"], ["second"], None]

    def test_a_bad_filter_points_at_the_character(self, results: dict[str, Any]) -> None:
        code, message = results["bad filter"]
        assert code == "INVALID_PARAMETER_VALUE"
        assert "at character 6" in message
        assert results["bad order"][0] == "INVALID_PARAMETER_VALUE"

    def test_are_deleted_and_restored(self, results: dict[str, Any]) -> None:
        assert results["deleted"] == [["second"], "deleted"]
        assert "must be in the 'active' state" in results["into deleted"][1]
        assert results["restored"] == "active"

    def test_that_are_not_there_do_not_exist(self, results: dict[str, Any]) -> None:
        assert results["unknown"][0] == results["no tag"][0] == "RESOURCE_DOES_NOT_EXIST"
        assert results["no number"][0] == "INVALID_PARAMETER_VALUE"


class TestRuns:
    def test_begin_when_their_client_says(self, results: dict[str, Any]) -> None:
        assert results["run"] == ["old", "RUNNING", 1_600_000_000_000, None, True]

    def test_are_renamed_and_ended(self, results: dict[str, Any]) -> None:
        assert results["renamed"] == ["newer", "newer"]
        assert results["ended"] == ["FAILED", 1_600_000_005_000]

    def test_are_deleted_and_restored(self, results: dict[str, Any]) -> None:
        assert (results["gone"], results["back"]) == ([0, 1, 1], "active")

    def test_tell_their_metrics_page_by_page(self, results: dict[str, Any]) -> None:
        assert results["history"] == [900, 1.0]
        assert (results["history pages"], results["no metric"]) == ([400, 400, 100], [])

    @pytest.mark.parametrize(
        "what", ["1001 metrics", "101 params", "101 tags", "1000 and 1", "same param twice"]
    )
    def test_take_no_more_at_once_than_mlflow_does(self, results: dict[str, Any], what: str) -> None:
        assert results[what][0] == "INVALID_PARAMETER_VALUE"

    def test_take_a_batch_whole_or_not_at_all(self, results: dict[str, Any]) -> None:
        assert results["half"][0] == "INVALID_PARAMETER_VALUE"
        assert results["nothing of it"] == [False, False, False]

    @pytest.mark.parametrize(
        ("what", "words"),
        [("bad key", "Names may only contain"), ("path key", "This name would resolve to")],
    )
    def test_refuse_keys_that_are_none(self, results: dict[str, Any], what: str, words: str) -> None:
        code, message = results[what]
        assert code == "INVALID_PARAMETER_VALUE"
        assert words in message

    def test_cut_values_off_as_mlflow_does(self, results: dict[str, Any]) -> None:
        assert results["cut"] == [6000, 8000]

    def test_that_are_not_there_take_nothing(self, results: dict[str, Any]) -> None:
        assert results["unknown run"] == [
            "RESOURCE_DOES_NOT_EXIST",
            f"RESOURCE_DOES_NOT_EXIST: Run with id={'f' * 32} not found",
        ]
        assert results["no such tag"][0] == "RESOURCE_DOES_NOT_EXIST"


class TestSearch:
    def test_compares_metrics_params_tags_and_attributes(self, results: dict[str, Any]) -> None:
        assert results["by metric"] == ["r6", "r5", "r4"]
        assert results["by param"] == ["r1", "r3"]
        assert results["by tag"] == ["r1", "r3", "r5"]
        assert results["by status"] == 7
        assert results["or"] == ["r1", "r2"]

    def test_comes_page_by_page(self, results: dict[str, Any]) -> None:
        assert results["search pages"] == [["0", "1", "2"], ["3", "4", "5"], ["6"]]

    def test_refuses_what_it_cannot_read(self, results: dict[str, Any]) -> None:
        assert results["bad search"][0] == results["bad token"][0] == "INVALID_PARAMETER_VALUE"
        assert "at character" in results["bad search"][1]


class TestLoggedModels:
    def test_are_made_pending(self, results: dict[str, Any]) -> None:
        assert results["model"] == ["net", "PENDING", True, {"a": "1"}, {"lr": "0.1"}, "agent", True]
        assert results["model name"][0] == "INVALID_PARAMETER_VALUE"

    def test_gain_tags_params_metrics_and_a_status(self, results: dict[str, Any]) -> None:
        status, tags, params, metrics = results["model now"]
        assert (status, tags, params) == ("READY", {"b": "2"}, 151)
        assert metrics == [["score", 0.75, "d"], ["score2", 0.5, None]]

    def test_are_found(self, results: dict[str, Any]) -> None:
        assert results["models"] == ["other", "net"]
        assert (
            results["models named"]
            == results["models by metric"]
            == results["models by tag"]
            == results["models on data"]
            == ["net"]
        )
        assert results["models ordered"] == ["net", "other"]
        assert results["model pages"] == [1, 1]

    def test_are_read_and_made_by_runs(self, results: dict[str, Any]) -> None:
        assert (results["outputs"], results["model inputs"]) == ([[True, 3]], [True])

    def test_that_are_deleted_are_not_found(self, results: dict[str, Any]) -> None:
        assert results["no model"][0] == "RESOURCE_DOES_NOT_EXIST"


class TestOutOfScope:
    @pytest.mark.parametrize(("what", "word"), [("traces", "traces"), ("dataset", "evaluation data sets")])
    def test_is_said_clearly(self, results: dict[str, Any], what: str, word: str) -> None:
        code, message = results[what]
        assert code == "ENDPOINT_NOT_FOUND"
        assert f"does not offer {word}" in message
