"""The model registry, by the unmodified client."""

from __future__ import annotations

from typing import Any

import pytest

from tests.hub import Hub
from tests.mlflow.conftest import Client

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
told["run_id"], told["model_id"] = run_id, logged.model_id

told["first"] = shown(client.get_model_version("iris", "1"))
told["second"] = shown(mlflow.register_model(f"runs:/{run_id}/net", "iris", tags={"by": "runs"}))
told["third"] = shown(mlflow.register_model(f"models:/{logged.model_id}", "iris"))
told["linked"] = client.get_logged_model(logged.model_id).tags["mlflow.modelVersions"]

client.create_registered_model("files", tags={"kind": "data"}, description="just files")
uri = mlflow.get_artifact_uri() if mlflow.active_run() else run.info.artifact_uri
told["files"] = shown(client.create_model_version("files", f"{uri}/files", run_id, description="two files"))
told["from_runs"] = shown(client.create_model_version("files", f"runs:/{run_id}/files/deep", run_id))
told["copied"] = shown(client.copy_model_version("models:/files/1", "copy of files"))
told["twice"] = refused(client.create_registered_model, "files")

client.set_registered_model_alias("iris", "champion", "2")
told["by_alias"] = client.get_model_version_by_alias("iris", "champion").version
told["aliases"] = client.get_registered_model("iris").aliases
client.set_registered_model_alias("iris", "champion", "1")
told["moved"] = client.get_model_version_by_alias("iris", "champion").version
client.set_registered_model_alias("iris", "old", "1")
client.delete_registered_model_alias("iris", "old")
told["no_alias"] = refused(client.get_model_version_by_alias, "iris", "old")
told["bad_alias"] = refused(client.set_registered_model_alias, "iris", "v3", "1")

told["staged"] = client.transition_model_version_stage("iris", "2", "Production").current_stage
client.transition_model_version_stage("iris", "3", "production", archive_existing_versions=True)
told["replaced"] = client.get_model_version("iris", "3").current_stage
told["archived"] = client.get_model_version("iris", "2").current_stage
told["latest"] = {row.current_stage: row.version for row in client.get_latest_versions("iris")}
told["staging"] = [row.version for row in client.get_latest_versions("iris", ["Production"])]
told["bad_stage"] = refused(client.transition_model_version_stage, "iris", "1", "Prod")

client.set_model_version_tag("iris", "1", "note", "x")
client.set_model_version_tag("iris", "1", "gone", "x")
client.delete_model_version_tag("iris", "1", "gone")
client.set_registered_model_tag("iris", "team", "vision")
client.set_registered_model_tag("iris", "other", "x")
client.delete_registered_model_tag("iris", "other")
client.update_model_version("iris", "1", "the first one")
client.update_registered_model("iris", "flowers")
told["iris"] = {name: getattr(client.get_registered_model("iris"), name) for name in ("description", "tags")}
told["changed"] = shown(client.get_model_version("iris", "1"))
told["ours"] = refused(client.set_model_version_tag, "iris", "1", "trainhub.scan", "clean")
told["long"] = refused(client.set_model_version_tag, "iris", "1", "k", "x" * 200_000)

told["where"] = client.get_model_version_download_uri("files", "1")
for name, address in {"number": "models:/files/1", "latest": "models:/files/latest", "spaced": "models:/copy of files/1",
        "alias": "models:/iris@champion", "stage": "models:/iris/Production", "inner": "models:/files/1/deep"}.items():
    told[f"got_{name}"] = listed(mlflow.artifacts.download_artifacts(address, dst_path=f"got-{name}"))
told["text"] = Path("got-number/notes.txt").read_text()
told["whole"] = str(Path("got-number").resolve())
told["predicted"] = flavor.load_model("models:/iris@champion").predict([[0.0], [3.0]]).tolist()
told["pyfunc"] = mlflow.pyfunc.load_model("models:/iris/1").predict([[3.0]]).tolist()

def versions(text, **more):
    return [[row.name, row.version] for row in client.search_model_versions(text, **more)]

told["searched"] = {
    "name": versions("name = 'iris'"), "run": versions(f"run_id = '{run_id}' and name LIKE 'f%'"),
    "several": versions("name IN ('files', 'copy of files')", order_by=["name ASC", "version_number ASC"]),
    "tag": versions("tags.by = 'runs'"),
    "number": versions("name = 'iris' and version_number >= 2", order_by=["version_number ASC"]),
    "not": versions("name != 'iris' and source_path ILIKE 'MLFLOW-artifacts%'"),
}
page = client.search_model_versions("name = 'iris'", max_results=2, order_by=["version_number ASC"])
rest = client.search_model_versions("name = 'iris'", max_results=2, order_by=["version_number ASC"], page_token=page.token)
told["pages"] = [[row.version for row in page], [row.version for row in rest], rest.token or None]
told["models"] = [row.name for row in client.search_registered_models()]
told["filtered"] = [row.name for row in client.search_registered_models("tags.kind = 'data'", order_by=["name DESC"])]
told["bad_filter"] = refused(client.search_model_versions, "name = iris")
told["bad_key"] = refused(client.search_model_versions, "size > 3")
told["missing"] = [refused(client.get_registered_model, "nope"), refused(client.get_model_version, "iris", "99")]

client.rename_registered_model("copy of files", "copied")
told["renamed"] = client.get_registered_model("copied").name
told["still"] = listed(mlflow.artifacts.download_artifacts("models:/copied/1", dst_path="got-renamed"))
client.delete_model_version("iris", "2")
told["deleted"] = refused(client.get_model_version, "iris", "2")
told["next"] = mlflow.register_model(f"models:/{logged.model_id}", "iris").version
client.delete_registered_model("copied")
told["no_model"] = refused(client.get_registered_model, "copied")

mlflow.delete_run(run_id)
told["outlived"] = listed(mlflow.artifacts.download_artifacts("models:/files/1", dst_path="got-late"))
told["late"] = refused(client.create_model_version, "files", f"runs:/{run_id}/files", run_id)

told["sources"] = {source: refused(client.create_model_version, "files", source) for source in [
    "http://example.org/model", "https://example.org/api/2.0/mlflow-artifacts/artifacts/1/x", "s3://bucket/model",
    "file:///etc/passwd", "/etc/passwd",
    "relative/path", "dbfs:/model", "models:/nope/1", "models:/m-" + "0" * 32, "runs:/" + "0" * 32 + "/x", "runs:/x/y",
    "mlflow-artifacts://example.org/1/" + "0" * 32 + "/artifacts", "mlflow-artifacts:/1/../2", "mlflow-artifacts:/models/iris/99",
    "models://other/iris/1",
]}
told["versions"] = len(client.search_model_versions("name = 'files'"))
"""


@pytest.fixture(scope="module")
def told(client: Client) -> dict[str, Any]:
    return client(SCRIPT)


CERTIFICATE = ["trainhub-certificate.json", "trainhub-certificate.json.sig"]


class TestRegistering:
    def test_log_model_registers_at_once(self, told: dict[str, Any]) -> None:
        first = told["first"]
        assert (first["version"], first["status"], first["run_id"]) == ("1", "READY", told["run_id"])
        assert first["source"] == f"models:/{told['model_id']}"

    def test_a_logged_model_is_found_by_its_runs_address(self, told: dict[str, Any]) -> None:
        second = told["second"]
        assert (second["version"], second["tags"]["by"], second["source"]) == (
            "2",
            "runs",
            f"models:/{told['model_id']}",
        )

    def test_and_by_its_own(self, told: dict[str, Any]) -> None:
        assert told["third"]["version"] == "3"
        assert '"iris"' in told["linked"]

    def test_plain_files_too(self, told: dict[str, Any]) -> None:
        assert (told["files"]["version"], told["files"]["description"]) == ("1", "two files")
        assert told["files"]["source"].startswith("mlflow-artifacts:/")
        assert told["from_runs"]["version"] == "2"

    def test_a_version_is_copied_with_where_it_came_from(self, told: dict[str, Any]) -> None:
        copied = told["copied"]
        assert (copied["name"], copied["version"], copied["source"]) == (
            "copy of files",
            "1",
            "models:/files/1",
        )
        assert copied["run_id"] == told["run_id"]

    def test_a_name_is_there_once(self, told: dict[str, Any]) -> None:
        code, sentence = told["twice"]
        assert (code, sentence) == (code, f"{code}: Registered Model (name=files) already exists.")
        assert code == "RESOURCE_ALREADY_EXISTS"

    def test_a_deleted_run_is_no_source_any_more(self, told: dict[str, Any]) -> None:
        assert told["late"][0] == "INVALID_PARAMETER_VALUE"

    def test_what_is_elsewhere_is_refused_naming_the_source(self, told: dict[str, Any]) -> None:
        for source, (code, sentence) in told["sources"].items():
            assert code == "INVALID_PARAMETER_VALUE", (source, code, sentence)
            assert "source:" in sentence, (source, sentence)
        assert told["versions"] == 2


class TestNaming:
    def test_aliases_move(self, told: dict[str, Any]) -> None:
        assert (told["by_alias"], told["moved"]) == ("2", "1")
        assert told["aliases"] == {"champion": "2"}

    def test_an_alias_that_is_gone_or_reads_like_a_version_is_refused(self, told: dict[str, Any]) -> None:
        assert told["no_alias"] == [
            "INVALID_PARAMETER_VALUE",
            "INVALID_PARAMETER_VALUE: Registered model alias old not found.",
        ]
        assert told["bad_alias"][0] == "INVALID_PARAMETER_VALUE"

    def test_stages(self, told: dict[str, Any]) -> None:
        assert (told["staged"], told["replaced"], told["archived"]) == (
            "Production",
            "Production",
            "Archived",
        )
        assert told["latest"] == {"None": "1", "Archived": "2", "Production": "3"}
        assert told["staging"] == ["3"]
        assert "Staging" in told["bad_stage"][1]

    def test_tags_and_descriptions(self, told: dict[str, Any]) -> None:
        assert told["iris"] == {"description": "flowers", "tags": {"team": "vision"}}
        assert told["changed"]["description"] == "the first one"
        assert told["changed"]["tags"]["note"] == "x"
        assert "gone" not in told["changed"]["tags"]
        assert told["ours"][0] == told["long"][0] == "INVALID_PARAMETER_VALUE"

    def test_renaming_keeps_the_files(self, told: dict[str, Any]) -> None:
        assert told["renamed"] == "copied"
        assert told["still"] == sorted(["deep/more.txt", "notes.txt", *CERTIFICATE])


class TestDownloading:
    def test_by_number_latest_alias_and_stage(self, told: dict[str, Any]) -> None:
        assert told["where"] == "mlflow-artifacts:/models/files/1"
        assert (
            told["got_number"] == told["got_spaced"] == sorted(["deep/more.txt", "notes.txt", *CERTIFICATE])
        )
        assert told["got_latest"] == sorted(["more.txt", *CERTIFICATE])
        assert "MLmodel" in told["got_alias"]
        assert "MLmodel" in told["got_stage"]
        assert (told["got_inner"], told["text"]) == (["more.txt"], "plain")

    def test_a_model_loads_and_predicts(self, told: dict[str, Any]) -> None:
        assert (told["predicted"], told["pyfunc"]) == ([0, 1], [1])

    def test_outlives_its_run(self, told: dict[str, Any]) -> None:
        assert "notes.txt" in told["outlived"]

    def test_what_was_downloaded_can_be_verified(self, told: dict[str, Any], hub: Hub) -> None:
        done = hub.manage("model", "verify", told["whole"])
        assert "VERIFIED: files version 1" in done.stdout


class TestSearching:
    def test_by_name_run_tag_number_and_source(self, told: dict[str, Any]) -> None:
        found = told["searched"]
        assert sorted(found["name"]) == [["iris", "1"], ["iris", "2"], ["iris", "3"]]
        assert sorted(found["run"]) == [["files", "1"], ["files", "2"]]
        assert found["several"] == [["copy of files", "1"], ["files", "1"], ["files", "2"]]
        assert (found["tag"], found["number"]) == ([["iris", "2"]], [["iris", "2"], ["iris", "3"]])
        assert found["not"] == [["files", "1"]]

    def test_page_by_page(self, told: dict[str, Any]) -> None:
        assert told["pages"] == [["1", "2"], ["3"], None]

    def test_models(self, told: dict[str, Any]) -> None:
        assert {"copy of files", "files", "iris"} <= set(told["models"])
        assert told["filtered"] == ["files"]

    def test_a_bad_filter_points_at_the_character(self, told: dict[str, Any]) -> None:
        assert "at character 8" in told["bad_filter"][1]
        assert "'size' cannot be asked for" in told["bad_key"][1]

    def test_what_is_not_there(self, told: dict[str, Any]) -> None:
        assert [code for code, _ in told["missing"]] == ["RESOURCE_DOES_NOT_EXIST"] * 2


class TestDeleting:
    def test_a_number_is_never_given_again(self, told: dict[str, Any]) -> None:
        assert told["deleted"][0] == "RESOURCE_DOES_NOT_EXIST"
        assert told["next"] == "4"

    def test_a_model_goes_with_its_versions(self, told: dict[str, Any]) -> None:
        assert told["no_model"][0] == "RESOURCE_DOES_NOT_EXIST"
