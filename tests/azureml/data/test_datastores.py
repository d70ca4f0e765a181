"""Datastores: which one of the hub a name means, what goes to them, and what is refused."""

from __future__ import annotations

import threading
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest

from tests.azureml.stub_hub import StubHub
from trainhub_azureml.data.data_files import DataFile, OnDisk, select_files
from trainhub_azureml.data.dataset import Dataset
from trainhub_azureml.data.datastore import Datastore
from trainhub_azureml.exceptions import UserErrorException
from trainhub_azureml.workspace import Workspace

BUCKET = {"name": "bucket", "kind": "s3"}
HUB = {"name": "uploads", "kind": "hub"}


def stores(hub: StubHub, *rows: dict[str, Any]) -> Workspace:
    hub.data.datastores = {row["name"]: row for row in rows}
    return Workspace()


class TestChoice:
    def test_of_the_default_is_that_of_the_name_or_the_one_for_uploads(self, stub_hub: StubHub) -> None:
        assert stores(stub_hub, BUCKET, HUB).get_default_datastore()._row.name == "uploads"
        named = {"name": "workspaceblobstore", "kind": "s3"}
        assert stores(stub_hub, HUB, named).get_default_datastore()._row.name == "workspaceblobstore"

    def test_makes_the_one_for_uploads(self, stub_hub: StubHub, capsys: pytest.CaptureFixture[str]) -> None:
        assert stores(stub_hub).get_default_datastore()._row.kind == "hub"
        assert "The datastore uploads was made on the hub" in capsys.readouterr().err

    def test_is_the_mapping_first(self, stub_hub: StubHub, own_folder: Path) -> None:
        (own_folder / "trainhub-azureml.toml").write_text(
            '[datastore.workspaceblobstore]\nuse = "bucket"\n[datastore.old]\npath = "/srv/data"\n'
            '[datastore.wrong]\nuse = "gone"\n'
        )
        workspace = stores(stub_hub, BUCKET, HUB)
        assert workspace.get_default_datastore()._row.name == "bucket"
        for _ in range(2):
            assert Datastore.get(workspace, "old")._row.path == "/srv/data"
        assert sorted(stub_hub.data.datastores) == ["bucket", "old", "uploads"]
        with pytest.raises(UserErrorException, match="uses gone, which is no datastore of the hub"):
            Datastore.get(workspace, "wrong")

    def test_of_an_unknown_name_says_what_there_is(self, stub_hub: StubHub) -> None:
        with pytest.raises(UserErrorException, match=r"there are: bucket\. .*\[datastore\.\"sets\"\]"):
            Datastore.get(stores(stub_hub, BUCKET), "sets")

    def test_a_mapping_with_both_is_refused(self, stub_hub: StubHub, own_folder: Path) -> None:
        (own_folder / "trainhub-azureml.toml").write_text('[datastore.x]\nuse = "a"\npath = "/b"\n')
        with pytest.raises(UserErrorException, match="needs either use or path"):
            Datastore.get(Workspace(), "x")


class TestFiles:
    def test_come_and_go(
        self, stub_hub: StubHub, own_folder: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        store = stores(stub_hub, HUB).get_default_datastore()
        for name in ("one", "two"):
            (own_folder / f"{name}.txt").write_text(name)
        store.upload_files(["./one.txt", own_folder / "two.txt"], target_path="texts/")
        (own_folder / "one.txt").write_text("changed")
        store.upload_files(["one.txt"], target_path="texts")
        assert store.download("copy", prefix="texts") == 2
        assert (own_folder / "copy/texts/one.txt").read_text() == "one"
        assert "texts/one.txt is there already, and stays as it is." in capsys.readouterr().out
        store.upload_files(["one.txt"], target_path="texts", overwrite=True)
        store.download("copy", overwrite=True)
        assert (own_folder / "copy/texts/one.txt").read_text() == "changed"
        assert stub_hub.data.sent == ["texts/one.txt", "texts/two.txt", "texts/one.txt"]

    def test_of_a_folder_that_this_machine_has_are_copied(self, stub_hub: StubHub, own_folder: Path) -> None:
        share = own_folder / "share"
        share.mkdir()
        (own_folder / "one.txt").write_text("one")
        store = Datastore(stores(stub_hub, {"name": "share", "kind": "folder", "path": str(share)}), "share")
        store.upload_files(["one.txt"], target_path="a")
        assert (share / "a" / "one.txt").read_text() == "one"
        assert Dataset.File.from_files((store, "a")).to_path() == ["/one.txt"]

    def test_of_a_bucket_are_not_for_this_machine(self, stub_hub: StubHub, own_folder: Path) -> None:
        store = Datastore(stores(stub_hub, BUCKET), "bucket")
        (own_folder / "x.txt").write_text("x")
        with pytest.raises(UserErrorException, match="is of the kind s3, which this machine does not write"):
            store.upload_files(["x.txt"])
        with pytest.raises(UserErrorException, match="which this machine does not read"):
            store.download("copy")

    def test_are_chosen_by_paths_and_patterns(self) -> None:
        files = [DataFile(path, OnDisk(path)) for path in ("a/b/1.csv", "a/b/c/2.csv", "a/3.txt", "d/4.csv")]

        def chosen(*paths: str) -> list[str]:
            return [file.path for file in select_files(files, paths)]

        assert chosen("") == ["a/3.txt", "a/b/1.csv", "a/b/c/2.csv", "d/4.csv"]
        assert chosen("a/b") == chosen("a/b/**") == ["1.csv", "c/2.csv"]
        assert chosen("a/b/*.csv") == chosen("a/b/1.csv") == ["1.csv"]
        assert chosen("**/*.csv") == ["a/b/1.csv", "a/b/c/2.csv", "d/4.csv"]
        assert chosen("a/b/1.csv", "a/b/c") == ["1.csv", "c/2.csv"]
        assert chosen("a", "e") == []


class TestBlobContainers:
    def test_are_added_with_their_credentials_as_a_secret(self, stub_hub: StubHub) -> None:
        workspace = stores(stub_hub, HUB)
        for token in ("?sv=1&sig=x", "?sv=2&sig=y"):
            store = Datastore.register_azure_blob_container(
                workspace=workspace,
                datastore_name="blobs",
                container_name="sets",
                account_name="team",
                sas_token=token,
            )
        assert (store.name, store.container_name, store.account_name) == ("blobs", "sets", "team")
        assert stub_hub.data.secrets == {"blobs-key": "sv=2&sig=y"}
        assert stub_hub.data.datastores["blobs"] == {
            "name": "blobs",
            "kind": "azure_blob",
            "account": "team",
            "container": "sets",
            "secret": "blobs-key",
        }
        with pytest.raises(UserErrorException, match="the hub has another datastore blobs"):
            Datastore.register_azure_blob_container(workspace, "blobs", "others", "team")

    def test_a_secret_that_is_there_is_not_replaced(self, stub_hub: StubHub) -> None:
        workspace = stores(stub_hub)
        stub_hub.data.secrets["new-key"] = "of something else"
        with pytest.raises(UserErrorException, match="the hub has a secret new-key already"):
            Datastore.register_azure_blob_container(workspace, "new", "sets", "team", account_key="k")
        assert stub_hub.data.secrets == {"new-key": "of something else"}
        assert "new" not in stub_hub.data.datastores

    def test_of_the_public_need_none_and_secrets_need_an_owner(self, stub_hub: StubHub) -> None:
        workspace = stores(stub_hub)
        Datastore.register_azure_blob_container(workspace, "open", "sampledata", "azureopendatastorage")
        assert "secret" not in stub_hub.data.datastores["open"]
        stub_hub.data.may_store_secrets = False
        with pytest.raises(UserErrorException, match="Ask an owner to store the secret x-key"):
            Datastore.register_azure_blob_container(workspace, "x", "sets", "team", account_key="k")
        assert "x" not in stub_hub.data.datastores


def test_a_download_that_breaks_leaves_nothing_that_looks_whole(stub_hub: StubHub, own_folder: Path) -> None:
    class Breaking(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("Content-Length", "1000")
            self.end_headers()
            self.wfile.write(b"half")

        def log_message(self, *_: object) -> None:
            pass

    with HTTPServer(("127.0.0.1", 0), Breaking) as server:
        threading.Thread(target=server.handle_request, daemon=True).start()
        dataset = Dataset.File.from_files(f"http://127.0.0.1:{server.server_port}/iris.csv")
        with pytest.raises(UserErrorException, match="ended 996 bytes before its end"):
            dataset.download("sets")
    assert not (own_folder / "sets" / "iris.csv").exists()


def test_no_path_leads_out_of_a_datastore(stub_hub: StubHub, own_folder: Path) -> None:
    store = stores(stub_hub, HUB).get_default_datastore()
    (own_folder / "one.txt").write_text("1")
    (own_folder / "below").mkdir()
    with pytest.raises(UserErrorException, match="leads out of its folder"):
        store.upload_files(["one.txt"], relative_root="below")
    with pytest.raises(UserErrorException, match="leads out of its folder"):
        store.upload_files(["one.txt"], target_path="a/../../b")


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (
            lambda ws: Datastore.register_azure_sql_database(workspace=ws),
            "register_azure_sql_database: is not offered: query the",
        ),
        (lambda ws: Dataset.Tabular.from_sql_query("x"), "query the database"),
        (lambda ws: Dataset.File.from_files("./data"), "Upload local files by Dataset.File.upload_directory"),
        (lambda ws: Dataset.File.from_files("https://x/a").mount(), "outside a job nothing is mounted"),
        (lambda ws: Dataset.Tabular.from_parquet_files("https://x/a").filter(1), "use pandas"),
        (lambda ws: Dataset.Tabular.from_parquet_files("https://x/a", include_path=True), "with pandas"),
        (lambda ws: ws.get_default_datastore().as_upload(), "give OutputFileDatasetConfig"),
        (lambda ws: Dataset.get_by_id(ws, "0-0-0"), "is no id of a dataset on the hub, such as birds:3"),
    ],
)
def test_what_is_refused_names_the_replacement(call: Any, sentence: str, stub_hub: StubHub) -> None:
    with pytest.raises(UserErrorException, match=sentence):
        call(stores(stub_hub, HUB))


def test_other_attributes_are_missing_as_usual(stub_hub: StubHub) -> None:
    store = stores(stub_hub, HUB).get_default_datastore()
    assert not hasattr(store, "nothing")
    assert not hasattr(Dataset, "nothing")
