"""Ranks read data from its store themselves, by addresses that their node has made."""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from tests.hub import eventually
from tests.node.builders import order, process
from tests.node.data.processes import bucket
from tests.node.hub import FakeHub, Key
from tests.node.test_range import range_settings
from tests.stores import azurite
from tests.stores.s3_server import BUCKET, PUBLIC, S3Server
from tests.stores.s3_signatures import SECRET
from trainhub_launch.data.downloads import DataDownload
from trainhub_launch.data.manifests import ListedFile, ManifestWriter
from trainhub_launch.data.store_signing import LIFE_S, SigningRefused, write_addresses
from trainhub_launch.data.stores import AZURE_BLOB, HTTP, S3, SignIn, Store
from trainhub_launch.log_names import PREPARATION_LOG
from trainhub_launch.order import NodeOrder
from trainhub_launch.plan import Reference
from trainhub_launch.states import ErrorKind
from trainhub_node import proc
from trainhub_node.agent import Agent
from trainhub_node.bootstrap_command import AGENT_WRAPPER
from trainhub_node.data.node_cache import find_obstore
from trainhub_node.references import references
from trainhub_node.rundir import RunDir
from trainhub_node.settings import NodeSettings
from trainhub_node.supervisor.gang import Gang

FILES = {"2024/a b%+ü.txt": b"sparrow", "2024/deep/b.txt": b"finch"}
# What the documents show, and what a rank must not be able to do.
READ = """
import json, os, sys, urllib.request
print(sys.argv[1])
with open(os.environ["TRAINHUB_INPUT_BIRDS_FILES"]) as lines:
    for line in lines:
        file = json.loads(line)
        with urllib.request.urlopen(file["url"]) as answer:
            print(file["path"], file["size"], answer.read().decode(), flush=True)
try:
    open(os.environ["TRAINHUB_INPUT_BIRDS_FILES"], "a")
    os.listdir(os.path.dirname(os.environ["TRAINHUB_INPUT_BIRDS_FILES"]))
except OSError as error:
    print("not written")
"""
WAIT = """
import os, time
print(open(os.environ["TRAINHUB_INPUT_BIRDS_FILES"]).read(), "started", flush=True)
time.sleep(60)
"""
EXPECTED = ["a b%+ü.txt 7 sparrow", "deep/b.txt 5 finch", "not written"]


@pytest.fixture
def server() -> Iterator[S3Server]:
    server = S3Server(objects=dict(FILES))
    server.objects[PUBLIC] = dict(FILES)
    yield server
    server.close()


def reading(hub: FakeHub, store: Store, script: str = READ, path: str = "2024") -> NodeOrder:
    birds, files = Reference("launch", "input_birds"), Reference("launch", "files_of_birds")
    argv = ("python", "train.py", "$TRAINHUB_INPUT_BIRDS")
    rank = process(0, argv, TRAINHUB_INPUT_BIRDS=birds, TRAINHUB_INPUT_BIRDS_FILES=files)
    item = DataDownload(store, path, "key", "workspace 1")
    return replace(order(hub, {"train.py": script}, rank), references={"birds": item})


def addresses_file(settings: NodeSettings, key: Key) -> Path:
    return settings.attempts / f"{key[0]}-{key[1]}" / "references" / "birds.jsonl"


def read_lines(path: Path) -> list[Mapping[str, object]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


@pytest.mark.in_containers
def test_ranks_read_a_bucket_and_do_not_get_its_credentials(
    hub: FakeHub, start_agent: Callable[..., Agent], reachable: Path, server: S3Server
) -> None:
    hub.secrets = {"datastore:key": SECRET}
    settings: NodeSettings = range_settings(hub, reachable)
    start_agent(settings)
    key = hub.give(reading(hub, bucket(server)))
    fact = hub.wait_done(key)
    assert not fact.error
    assert hub.log(key).decode().splitlines() == [f"s3://{BUCKET}/2024", *EXPECTED]
    log = hub.log(key, PREPARATION_LOG).decode()
    assert "by the addresses in $TRAINHUB_INPUT_BIRDS_FILES; each is valid for 6 hours" in log
    assert "X-Amz" not in log
    eventually(lambda: not addresses_file(settings, key).exists(), 30, "the addresses stay on the disk")
    assert not [
        path for path in reachable.rglob("*") if path.is_file() and SECRET.encode() in path.read_bytes()
    ]


def test_addresses_are_of_the_runs_account_alone_and_in_no_environment(
    hub: FakeHub, start_agent: Callable[..., Agent], reachable: Path, server: S3Server
) -> None:
    hub.secrets = {"datastore:key": SECRET}
    settings: NodeSettings = range_settings(hub, reachable)
    start_agent(settings)
    key = hub.give(reading(hub, bucket(server), WAIT))
    path = addresses_file(settings, key)
    hub.wait_log(key, b"started")
    facts = path.stat()
    assert (facts.st_mode & 0o777, facts.st_uid != 0, facts.st_uid) == (0o400, True, facts.st_gid)
    assert path.parent.stat().st_uid == os.geteuid(), "the run cannot put another file in its place"
    signatures = [str(line["url"]).rpartition("Signature=")[2] for line in read_lines(path)]
    assert not [text for text in signatures if text.encode() in hub.log(key)]
    assert len(signatures) == len(FILES)
    assert b"X-Amz-Signature=" + b"*" * 64 in hub.log(key)
    for pid in [running.pid for running in proc.list_processes()]:
        try:
            seen = Path(f"/proc/{pid}/environ").read_bytes() + Path(f"/proc/{pid}/cmdline").read_bytes()
        except OSError:
            continue
        # A hub of another test, which keeps its own files in such a store.
        if b"BLOB_STORE_SECRET=" in seen:
            continue
        assert not [text for text in (SECRET, *signatures) if text.encode() in seen], pid
    ends = [int(str(line["expires_at"])) - time.time() for line in read_lines(path)]
    assert all(0 < end <= LIFE_S for end in ends)


def test_ranks_read_a_container_with_an_accounts_key(
    hub: FakeHub, start_agent: Callable[..., Agent], reachable: Path, tmp_path: Path
) -> None:
    hub.secrets = {"datastore:key": azurite.KEY}
    start_agent(range_settings(hub, reachable))
    with azurite.azurite(tmp_path / "azurite", "127.0.0.1", FILES) as endpoint:
        settings = {"account": azurite.ACCOUNT, "container": azurite.CONTAINER, "endpoint": endpoint}
        store = Store(AZURE_BLOB, SignIn.SECRET, settings)
        key = hub.give(reading(hub, store))
        assert not hub.wait_done(key).error
        uri = f"{endpoint}/{azurite.CONTAINER}/2024"
        assert hub.log(key).decode().splitlines() == [uri, *EXPECTED]
        hub.secrets = {"datastore:key": azurite.signature("2099-01-01T00:00:00Z")}
        fact = hub.wait_done(hub.give(reading(hub, store)))
    assert fact.error_kind == ErrorKind.DATA
    assert "is read with a shared access signature, which can make no shorter one" in fact.error


@pytest.mark.parametrize("kind", [S3, HTTP])
def test_what_is_public_has_plain_addresses(
    hub: FakeHub, start_agent: Callable[..., Agent], reachable: Path, server: S3Server, kind: str
) -> None:
    settings: NodeSettings = range_settings(hub, reachable)
    start_agent(settings)
    web = Store(HTTP, settings={"url": f"{server.url}/{PUBLIC}"})
    store = web if kind == HTTP else Store(S3, settings={"bucket": PUBLIC, "endpoint": server.url})
    key = hub.give(reading(hub, store, WAIT, path="2024/deep/b.txt"))
    hub.wait_log(key, b"started")
    (line,) = read_lines(addresses_file(settings, key))
    assert line["url"] == f"{server.url}/{PUBLIC}/2024/deep/b.txt"
    assert (line["path"], line["size"], "expires_at" in line) == ("b.txt", 5, False)


def test_what_cannot_be_listed_ends_the_run_with_the_reason(
    hub: FakeHub, start_agent: Callable[..., Agent], reachable: Path, server: S3Server
) -> None:
    start_agent(range_settings(hub, reachable))
    for secret, path, words in (
        ("wrong", "2024", "The bucket birds refuses these credentials"),
        (SECRET, "2025", "The bucket birds has nothing at 2025"),
    ):
        hub.secrets = {"datastore:key": secret}
        fact = hub.wait_done(hub.give(reading(hub, bucket(server), path=path)))
        assert fact.error_kind == ErrorKind.DATA
        assert f"Input birds on node here: {words}" in fact.error


def test_addresses_are_made_anew_and_removed_at_the_end(
    server: S3Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "argv", [AGENT_WRAPPER[-1]])
    monkeypatch.setattr(references, "RENEWAL_S", 0)
    folder = RunDir(str(tmp_path), "a1" * 16, 1)
    Path(folder.logs).mkdir(parents=True)
    item = DataDownload(bucket(server), "2024", "key", "workspace 1")
    terms = {"node": "here", "account": None, "data": {"library": find_obstore()}, "pip": {}}
    gang = Gang(folder, {"go": True, "references": {"birds": item.to_json()}}, terms)
    gang.secrets = {"datastore:key": SECRET}
    references.prepare_references(gang)
    path, renewed = Path(folder.references) / "birds.jsonl", gang.references
    assert renewed is not None
    before = path.stat().st_ino
    server.objects[BUCKET]["2024/new.txt"] = b"not listed when the run began"
    renewed.renew_if_due()
    eventually(lambda: path.stat().st_ino != before, 20, "the addresses are new")
    assert [line["path"] for line in read_lines(path)] == ["a b%+ü.txt", "deep/b.txt"]
    Path(folder.manifest("reference-birds")).unlink()
    renewed.renew_if_due()
    log = Path(folder.log(PREPARATION_LOG))
    eventually(lambda: "The addresses were not renewed" in log.read_text(), 20, "the log says so")
    assert len(read_lines(path)) == len(FILES), "those from before still end later"
    renewed.remove()
    assert not Path(folder.references).exists()


def test_an_address_that_azure_would_refuse_is_not_made(tmp_path: Path) -> None:
    """The identity of a node signs with the library, which is wrong about names with such characters."""
    store = Store(AZURE_BLOB, SignIn.NODE, {"account": "team", "container": "birds"})
    manifest = tmp_path / "list"
    with manifest.open("wb") as output:
        writer = ManifestWriter(output)
        writer.write(ListedFile("a b.txt", 1, "", 0.0))
        writer.flush()
    request = {"manifest": str(manifest), "path": "", "is_file": False, "secret": "", "owner": None}
    library = SimpleNamespace(
        sign=lambda client, method, keys, expires_in: ["https://team/birds/a%20b.txt?sig=1"]
    )
    with pytest.raises(SigningRefused, match="can make no address of a b"):
        write_addresses(library, None, store, {**request, "output": str(tmp_path / "addresses")})
    assert not (tmp_path / "addresses").exists()
