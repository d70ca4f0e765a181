"""Files by the unmodified client: logged, listed, fetched, replaced, sent in parts, refused."""

from __future__ import annotations

from typing import Any

import pytest

from tests.mlflow.conftest import ClientRunner

pytestmark = pytest.mark.slow

SCRIPT = """
import hashlib, pathlib, tempfile
import numpy, pandas
from PIL import Image

def listed(path=None, run_id=None):
    return [[item.path, item.is_dir, item.file_size] for item in client.list_artifacts(run_id or
        run.info.run_id, path)]

def read(path, run_id=None):
    return pathlib.Path(mlflow.artifacts.download_artifacts(run_id=run_id or run.info.run_id,
        artifact_path=path)).read_bytes()

folder = pathlib.Path(tempfile.mkdtemp())
(folder / "deep" / "er").mkdir(parents=True)
(folder / "top.txt").write_text("top")
(folder / "deep" / "one.bin").write_bytes(bytes(range(256)))
(folder / "deep" / "er" / "größe 1%.txt").write_text("grün")

mlflow.set_experiment("files")
with mlflow.start_run() as run:
    address = f"mlflow-artifacts:/{run.info.experiment_id}/{run.info.run_id}/artifacts/x"
    out["uri"] = mlflow.get_artifact_uri("x") == address
    mlflow.log_artifact(str(folder / "top.txt"))
    mlflow.log_artifact(str(folder / "top.txt"), "copies/of it")
    mlflow.log_artifacts(str(folder), "all")
    mlflow.log_text("hello", "text/a.txt")
    mlflow.log_dict({"lr": 0.1}, "config.json")
    mlflow.log_dict({"lr": 0.1}, "config.yaml")
    mlflow.log_image(numpy.zeros((8, 8, 3), dtype="uint8"), "image.png")
    mlflow.log_image(Image.new("RGB", (8, 8)), key="steps", step=3)
    mlflow.log_table({"q": ["a"], "score": [1]}, "table.json")
    mlflow.log_table(pandas.DataFrame({"q": ["b"], "score": [2]}), "table.json")
    try:
        import matplotlib
        matplotlib.use("agg")
        import matplotlib.pyplot as plt
        figure, axis = plt.subplots()
        axis.plot([1, 2])
        mlflow.log_figure(figure, "figure.png")
        out["figure"] = read("figure.png")[:4] == b"\\x89PNG"
    except ImportError:
        out["figure"] = True
    mlflow.log_text("first", "again.txt")
    mlflow.log_text("second", "again.txt")

out["root"] = [item for item in listed() if item[0] not in ("figure.png",)]
out["folder"], out["below"] = listed("all/deep"), listed("all/deep/er")
out["file"], out["nothing"] = listed("config.json"), listed("no")
out["bytes"] = read("all/deep/one.bin") == bytes(range(256))
out["name"] = read("all/deep/er/größe 1%.txt").decode()
out["again"] = read("again.txt").decode()
out["text"] = mlflow.artifacts.load_text(f"runs:/{run.info.run_id}/text/a.txt")
out["dict"] = mlflow.artifacts.load_dict(f"runs:/{run.info.run_id}/config.json")
out["image"] = list(mlflow.artifacts.load_image(f"runs:/{run.info.run_id}/image.png").size)
out["table"] = mlflow.load_table("table.json", run_ids=[run.info.run_id])[["q", "score"]].values.tolist()
whole = pathlib.Path(client.download_artifacts(run.info.run_id, "", tempfile.mkdtemp()))
out["whole"] = sorted(str(path.relative_to(whole)) for path in whole.rglob("*.txt"))
out["steps"] = len(listed("images"))

from mlflow.store.artifact.artifact_repository_registry import get_artifact_repository
repository = get_artifact_repository(run.info.artifact_uri)
repository.delete_artifacts("all/deep")
out["deleted"] = listed("all")

def failed(call, *args, **named):
    try:
        call(*args, **named)
    except Exception as error:
        return str(error)[:400]
    return ""

out["missing"] = failed(client.download_artifacts, run.info.run_id, "no/such")
out["above"] = failed(client.log_text, run.info.run_id, "x", "../up.txt")
out["over a folder"] = failed(client.log_text, run.info.run_id, "x", "text")
big = folder / "big.bin"
big.write_bytes(numpy.random.default_rng(1).bytes(11_000_000))
os.environ["MLFLOW_ENABLE_PROXY_MULTIPART_UPLOAD"] = "true"
os.environ["MLFLOW_MULTIPART_UPLOAD_MINIMUM_FILE_SIZE"] = "1000000"
os.environ["MLFLOW_MULTIPART_UPLOAD_CHUNK_SIZE"] = "3000000"
client.log_artifact(run.info.run_id, str(big), "parts")
out["parts"] = listed("parts")
digest = hashlib.sha256(read("parts/big.bin")).hexdigest()
out["same"] = digest == hashlib.sha256(big.read_bytes()).hexdigest()
os.environ["MLFLOW_ENABLE_PROXY_MULTIPART_DOWNLOAD"] = "true"
out["forced"] = len(read("parts/big.bin"))
del os.environ["MLFLOW_ENABLE_PROXY_MULTIPART_DOWNLOAD"], os.environ["MLFLOW_ENABLE_PROXY_MULTIPART_UPLOAD"]
model = client.create_logged_model(run.info.experiment_id, name="net", source_run_id=run.info.run_id)
client.log_model_artifacts(model.model_id, str(folder / "deep" if (folder / "deep").exists() else folder))
out["model"] = sorted(item.path for item in client.list_logged_model_artifacts(model.model_id))
out["apart"] = "model" in [item[0] for item in listed()]
"""


@pytest.fixture(scope="module")
def results(client: ClientRunner) -> dict[str, Any]:
    return client(SCRIPT)


class TestLogging:
    def test_puts_each_kind_of_file_where_it_was_said(self, results: dict[str, Any]) -> None:
        root = {path: (is_dir, size) for path, is_dir, size in results["root"]}
        assert results["uri"]
        assert results["figure"]
        files = {"again.txt", "config.json", "config.yaml", "image.png", "table.json", "top.txt"}
        assert set(root) == {*files, "all", "copies", "images", "text"}
        assert root["all"] == (True, None)
        assert root["top.txt"] == (False, 3)

    def test_gives_back_what_was_logged(self, results: dict[str, Any]) -> None:
        assert results["bytes"]
        assert (results["name"], results["text"], results["dict"], results["image"]) == (
            "grün",
            "hello",
            {"lr": 0.1},
            [8, 8],
        )
        assert results["again"] == "second"

    def test_adds_to_a_table(self, results: dict[str, Any]) -> None:
        assert results["table"] == [["a", 1], ["b", 2]]

    def test_of_images_by_step_keeps_them(self, results: dict[str, Any]) -> None:
        assert results["steps"] == 2


class TestReading:
    def test_lists_one_folder(self, results: dict[str, Any]) -> None:
        assert results["folder"] == [["all/deep/er", True, None], ["all/deep/one.bin", False, 256]]
        assert results["below"] == [["all/deep/er/größe 1%.txt", False, 5]]

    def test_of_a_file_or_of_nothing_lists_nothing(self, results: dict[str, Any]) -> None:
        assert (results["file"], results["nothing"]) == ([], [])

    def test_downloads_a_whole_run(self, results: dict[str, Any]) -> None:
        assert results["whole"] == [
            "again.txt",
            "all/deep/er/größe 1%.txt",
            "all/top.txt",
            "copies/of it/top.txt",
            "text/a.txt",
            "top.txt",
        ]

    def test_of_what_is_not_there_says_so(self, results: dict[str, Any]) -> None:
        assert "Failed to download artifacts from path 'such'" in results["missing"]


class TestChanging:
    def test_deletes_a_folder_with_all_that_is_in_it(self, results: dict[str, Any]) -> None:
        assert results["deleted"] == [["all/top.txt", False, 3]]

    def test_refuses_to_leave_the_run_or_to_put_a_file_over_a_folder(self, results: dict[str, Any]) -> None:
        assert results["above"]
        assert "is a folder" in results["over a folder"] or "400" in results["over a folder"]


class TestParts:
    def test_sent_side_by_side_become_the_file(self, results: dict[str, Any]) -> None:
        assert results["parts"] == [["parts/big.bin", False, 11_000_000]]
        assert results["same"]

    def test_a_client_that_insists_on_fetching_parts_gets_the_file_all_the_same(
        self, results: dict[str, Any]
    ) -> None:
        assert results["forced"] == 11_000_000


class TestModels:
    def test_have_files_of_their_own(self, results: dict[str, Any]) -> None:
        assert results["model"] == ["er", "one.bin"]
        assert not results["apart"]
