"""The model registry, by the unmodified client."""

from __future__ import annotations

from typing import Any

import pytest

from tests.hub import Hub
from tests.mlflow.conftest import ClientRunner

pytestmark = pytest.mark.slow

SCRIPT = """
from pathlib import Path
from sklearn.linear_model import LogisticRegression
from mlflow import sklearn as flavor

def listed(folder):
    return sorted(str(path.relative_to(folder)) for path in Path(folder).rglob("*") if path.is_file())

def shown(version):
    return {"aliases": list(version.aliases)} | {name: getattr(version, name) for name in
        ("name", "version", "current_stage", "status", "run_id", "source", "description", "tags")}

model = LogisticRegression().fit([[0.0], [1.0], [2.0], [3.0]], [0, 0, 1, 1])
mlflow.set_experiment("registry")
with mlflow.start_run() as run:
    mlflow.log_param("C", 1.0)
    mlflow.log_metric("accuracy", 0.75)
    logged = flavor.log_model(model, name="net", registered_model_name="iris", serialization_format="pickle")
    mlflow.log_text("plain", "files/notes.txt")
    mlflow.log_text("deep", "files/deep/more.txt")
run_id = run.info.run_id
out["run_id"], out["model_id"] = run_id, logged.model_id

out["first"] = shown(client.get_model_version("iris", "1"))
out["second"] = shown(mlflow.register_model(f"runs:/{run_id}/net", "iris", tags={"by": "runs"}))
out["third"] = shown(mlflow.register_model(f"models:/{logged.model_id}", "iris"))
out["linked"] = client.get_logged_model(logged.model_id).tags["mlflow.modelVersions"]

client.create_registered_model("files", tags={"kind": "data"}, description="just files")
uri = mlflow.get_artifact_uri() if mlflow.active_run() else run.info.artifact_uri
out["files"] = shown(client.create_model_version("files", f"{uri}/files", run_id, description="two files"))
out["from_runs"] = shown(client.create_model_version("files", f"runs:/{run_id}/files/deep", run_id))
out["copied"] = shown(client.copy_model_version("models:/files/1", "copy of files"))
out["twice"] = error_of(client.create_registered_model, "files")

client.set_registered_model_alias("iris", "champion", "2")
out["by_alias"] = client.get_model_version_by_alias("iris", "champion").version
out["aliases"] = client.get_registered_model("iris").aliases
client.set_registered_model_alias("iris", "champion", "1")
out["moved"] = client.get_model_version_by_alias("iris", "champion").version
client.set_registered_model_alias("iris", "old", "1")
client.delete_registered_model_alias("iris", "old")
out["no_alias"] = error_of(client.get_model_version_by_alias, "iris", "old")
out["bad_alias"] = error_of(client.set_registered_model_alias, "iris", "v3", "1")

out["staged"] = client.transition_model_version_stage("iris", "2", "Production").current_stage
client.transition_model_version_stage("iris", "3", "production", archive_existing_versions=True)
out["replaced"] = client.get_model_version("iris", "3").current_stage
out["archived"] = client.get_model_version("iris", "2").current_stage
out["latest"] = {row.current_stage: row.version for row in client.get_latest_versions("iris")}
out["staging"] = [row.version for row in client.get_latest_versions("iris", ["Production"])]
out["bad_stage"] = error_of(client.transition_model_version_stage, "iris", "1", "Prod")

client.set_model_version_tag("iris", "1", "note", "x")
client.set_model_version_tag("iris", "1", "gone", "x")
client.delete_model_version_tag("iris", "1", "gone")
client.set_registered_model_tag("iris", "team", "vision")
client.set_registered_model_tag("iris", "other", "x")
client.delete_registered_model_tag("iris", "other")
client.update_model_version("iris", "1", "the first one")
client.update_registered_model("iris", "flowers")
out["iris"] = {name: getattr(client.get_registered_model("iris"), name) for name in ("description", "tags")}
out["changed"] = shown(client.get_model_version("iris", "1"))
out["ours"] = error_of(client.set_model_version_tag, "iris", "1", "trainhub.scan", "clean")
out["long"] = error_of(client.set_model_version_tag, "iris", "1", "k", "x" * 200_000)

out["where"] = client.get_model_version_download_uri("files", "1")
for name, address in {"number": "models:/files/1", "latest": "models:/files/latest",
    "spaced": "models:/copy of files/1",
        "alias": "models:/iris@champion", "stage": "models:/iris/Production",
        "inner": "models:/files/1/deep"}.items():
    out[f"got_{name}"] = listed(mlflow.artifacts.download_artifacts(address, dst_path=f"got-{name}"))
out["text"] = Path("got-number/notes.txt").read_text()
out["whole"] = str(Path("got-number").resolve())
out["predicted"] = flavor.load_model("models:/iris@champion").predict([[0.0], [3.0]]).tolist()
out["pyfunc"] = mlflow.pyfunc.load_model("models:/iris/1").predict([[3.0]]).tolist()

def versions(text, **more):
    return [[row.name, row.version] for row in client.search_model_versions(text, **more)]

out["searched"] = {
    "name": versions("name = 'iris'"), "run": versions(f"run_id = '{run_id}' and name LIKE 'f%'"),
    "several": versions("name IN ('files', 'copy of files')", order_by=["name ASC", "version_number ASC"]),
    "tag": versions("tags.by = 'runs'"),
    "number": versions("name = 'iris' and version_number >= 2", order_by=["version_number ASC"]),
    "not": versions("name != 'iris' and source_path ILIKE 'MLFLOW-artifacts%'"),
}
page = client.search_model_versions("name = 'iris'", max_results=2, order_by=["version_number ASC"])
rest = client.search_model_versions("name = 'iris'", max_results=2, order_by=["version_number ASC"],
    page_token=page.token)
out["pages"] = [[row.version for row in page], [row.version for row in rest], rest.token or None]
out["models"] = [row.name for row in client.search_registered_models()]
out["filtered"] = [row.name for row in client.search_registered_models("tags.kind = 'data'",
    order_by=["name DESC"])]
out["bad_filter"] = error_of(client.search_model_versions, "name = iris")
out["bad_key"] = error_of(client.search_model_versions, "size > 3")
out["missing"] = [error_of(client.get_registered_model, "nope"), error_of(client.get_model_version,
    "iris", "99")]

client.rename_registered_model("copy of files", "copied")
out["renamed"] = client.get_registered_model("copied").name
out["still"] = listed(mlflow.artifacts.download_artifacts("models:/copied/1", dst_path="got-renamed"))
client.delete_model_version("iris", "2")
out["deleted"] = error_of(client.get_model_version, "iris", "2")
out["next"] = mlflow.register_model(f"models:/{logged.model_id}", "iris").version
client.delete_registered_model("copied")
out["no_model"] = error_of(client.get_registered_model, "copied")

mlflow.delete_run(run_id)
out["outlived"] = listed(mlflow.artifacts.download_artifacts("models:/files/1", dst_path="got-late"))
out["late"] = error_of(client.create_model_version, "files", f"runs:/{run_id}/files", run_id)

out["sources"] = {source: error_of(client.create_model_version, "files", source) for source in [
    "http://example.org/model", "https://example.org/api/2.0/mlflow-artifacts/artifacts/1/x",
    "s3://bucket/model",
    "file:///etc/passwd", "/etc/passwd",
    "relative/path", "dbfs:/model", "models:/nope/1", "models:/m-" + "0" * 32,
    "runs:/" + "0" * 32 + "/x", "runs:/x/y",
    "mlflow-artifacts://example.org/1/" + "0" * 32 + "/artifacts", "mlflow-artifacts:/1/../2",
    "mlflow-artifacts:/models/iris/99",
    "models://other/iris/1",
]}
out["versions"] = len(client.search_model_versions("name = 'files'"))
"""


@pytest.fixture(scope="module")
def results(client: ClientRunner) -> dict[str, Any]:
    return client(SCRIPT)


CERTIFICATE = ["trainhub-certificate.json", "trainhub-certificate.json.sig"]


class TestRegistering:
    def test_log_model_registers_at_once(self, results: dict[str, Any]) -> None:
        first = results["first"]
        assert (first["version"], first["status"], first["run_id"]) == ("1", "READY", results["run_id"])
        assert first["source"] == f"models:/{results['model_id']}"

    def test_a_logged_model_is_found_by_its_runs_address(self, results: dict[str, Any]) -> None:
        second = results["second"]
        assert (second["version"], second["tags"]["by"], second["source"]) == (
            "2",
            "runs",
            f"models:/{results['model_id']}",
        )

    def test_and_by_its_own(self, results: dict[str, Any]) -> None:
        assert results["third"]["version"] == "3"
        assert '"iris"' in results["linked"]

    def test_plain_files_too(self, results: dict[str, Any]) -> None:
        assert (results["files"]["version"], results["files"]["description"]) == ("1", "two files")
        assert results["files"]["source"].startswith("mlflow-artifacts:/")
        assert results["from_runs"]["version"] == "2"

    def test_a_version_is_copied_with_where_it_came_from(self, results: dict[str, Any]) -> None:
        copied = results["copied"]
        assert (copied["name"], copied["version"], copied["source"]) == (
            "copy of files",
            "1",
            "models:/files/1",
        )
        assert copied["run_id"] == results["run_id"]

    def test_a_name_is_there_once(self, results: dict[str, Any]) -> None:
        code, sentence = results["twice"]
        assert (code, sentence) == (code, f"{code}: Registered Model (name=files) already exists.")
        assert code == "RESOURCE_ALREADY_EXISTS"

    def test_a_deleted_run_is_no_source_any_more(self, results: dict[str, Any]) -> None:
        assert results["late"][0] == "INVALID_PARAMETER_VALUE"

    def test_what_is_elsewhere_is_refused_naming_the_source(self, results: dict[str, Any]) -> None:
        for source, (code, sentence) in results["sources"].items():
            assert code == "INVALID_PARAMETER_VALUE", (source, code, sentence)
            assert "source:" in sentence, (source, sentence)
        assert results["versions"] == 2


class TestNaming:
    def test_aliases_move(self, results: dict[str, Any]) -> None:
        assert (results["by_alias"], results["moved"]) == ("2", "1")
        assert results["aliases"] == {"champion": "2"}

    def test_an_alias_that_is_gone_or_reads_like_a_version_is_refused(self, results: dict[str, Any]) -> None:
        assert results["no_alias"] == [
            "INVALID_PARAMETER_VALUE",
            "INVALID_PARAMETER_VALUE: Registered model alias old not found.",
        ]
        assert results["bad_alias"][0] == "INVALID_PARAMETER_VALUE"

    def test_stages(self, results: dict[str, Any]) -> None:
        assert (results["staged"], results["replaced"], results["archived"]) == (
            "Production",
            "Production",
            "Archived",
        )
        assert results["latest"] == {"None": "1", "Archived": "2", "Production": "3"}
        assert results["staging"] == ["3"]
        assert "Staging" in results["bad_stage"][1]

    def test_tags_and_descriptions(self, results: dict[str, Any]) -> None:
        assert results["iris"] == {"description": "flowers", "tags": {"team": "vision"}}
        assert results["changed"]["description"] == "the first one"
        assert results["changed"]["tags"]["note"] == "x"
        assert "gone" not in results["changed"]["tags"]
        assert results["ours"][0] == results["long"][0] == "INVALID_PARAMETER_VALUE"

    def test_renaming_keeps_the_files(self, results: dict[str, Any]) -> None:
        assert results["renamed"] == "copied"
        assert results["still"] == sorted(["deep/more.txt", "notes.txt", *CERTIFICATE])


class TestDownloading:
    def test_by_number_latest_alias_and_stage(self, results: dict[str, Any]) -> None:
        assert results["where"] == "mlflow-artifacts:/models/files/1"
        assert (
            results["got_number"]
            == results["got_spaced"]
            == sorted(["deep/more.txt", "notes.txt", *CERTIFICATE])
        )
        assert results["got_latest"] == sorted(["more.txt", *CERTIFICATE])
        assert "MLmodel" in results["got_alias"]
        assert "MLmodel" in results["got_stage"]
        assert (results["got_inner"], results["text"]) == (["more.txt"], "plain")

    def test_a_model_loads_and_predicts(self, results: dict[str, Any]) -> None:
        assert (results["predicted"], results["pyfunc"]) == ([0, 1], [1])

    def test_outlives_its_run(self, results: dict[str, Any]) -> None:
        assert "notes.txt" in results["outlived"]

    def test_what_was_downloaded_can_be_verified(self, results: dict[str, Any], hub: Hub) -> None:
        process = hub.manage("model", "verify", results["whole"])
        assert "VERIFIED: files version 1" in process.stdout


class TestSearching:
    def test_by_name_run_tag_number_and_source(self, results: dict[str, Any]) -> None:
        searched = results["searched"]
        assert sorted(searched["name"]) == [["iris", "1"], ["iris", "2"], ["iris", "3"]]
        assert sorted(searched["run"]) == [["files", "1"], ["files", "2"]]
        assert searched["several"] == [["copy of files", "1"], ["files", "1"], ["files", "2"]]
        assert (searched["tag"], searched["number"]) == ([["iris", "2"]], [["iris", "2"], ["iris", "3"]])
        assert searched["not"] == [["files", "1"]]

    def test_page_by_page(self, results: dict[str, Any]) -> None:
        assert results["pages"] == [["1", "2"], ["3"], None]

    def test_models(self, results: dict[str, Any]) -> None:
        assert {"copy of files", "files", "iris"} <= set(results["models"])
        assert results["filtered"] == ["files"]

    def test_a_bad_filter_points_at_the_character(self, results: dict[str, Any]) -> None:
        assert "at character 8" in results["bad_filter"][1]
        assert "'size' is not an attribute" in results["bad_key"][1]

    def test_what_is_not_there(self, results: dict[str, Any]) -> None:
        assert [code for code, _ in results["missing"]] == ["RESOURCE_DOES_NOT_EXIST"] * 2


class TestDeleting:
    def test_a_number_is_never_given_again(self, results: dict[str, Any]) -> None:
        assert results["deleted"][0] == "RESOURCE_DOES_NOT_EXIST"
        assert results["next"] == "4"

    def test_a_model_goes_with_its_versions(self, results: dict[str, Any]) -> None:
        assert results["no_model"][0] == "RESOURCE_DOES_NOT_EXIST"
