"""Downloads of a dataset's version whose files were changed, for a run that takes what is there now."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.node.data.processes import Fetch, bucket, written_list
from tests.stores import azurite
from tests.stores.s3_server import BUCKET, S3Server
from tests.stores.s3_signatures import SECRET
from trainhub_launch.data.stores import AZURE_BLOB, SignIn, Store
from trainhub_node.data.comparison.changed_files import MAX_LOGGED

FILES = {f"2024/{name}": name.encode() for name in ("a b.txt", "deep/b.txt", "c.txt")}
NEVER = {"swarm": "5f" * 32, "url": "http://127.0.0.1:1/", "ticket": "thp_1", "ca": "", "proxies": {}}


@dataclass
class Place:
    store: Store
    secret: str
    put: Callable[[str, bytes], object]
    remove: Callable[[str], object]


@pytest.fixture
def server() -> Iterator[S3Server]:
    server = S3Server(objects=dict(FILES))
    yield server
    server.close()


@pytest.fixture(params=["s3", "azure_blob"])
def place(request: pytest.FixtureRequest, server: S3Server, tmp_path: Path) -> Iterator[Place]:
    if request.param == "s3":
        objects = server.objects[BUCKET]
        yield Place(bucket(server), SECRET, objects.__setitem__, objects.pop)
        return
    with azurite.azurite(tmp_path / "azurite", "127.0.0.1", FILES) as endpoint:
        settings = {"account": azurite.ACCOUNT, "container": azurite.CONTAINER, "endpoint": endpoint}
        yield Place(
            Store(AZURE_BLOB, SignIn.SECRET, settings),
            azurite.KEY,
            lambda name, content: azurite.put_blob(endpoint, name, content),
            lambda name: azurite.delete_blob(endpoint, name),
        )


def listed(place: Place, output: Path) -> str:
    """A list of the files, made as the hub makes it."""
    request = {
        "work": "list",
        "store": place.store.to_json(),
        "path": "2024",
        "secret": place.secret,
        "options": {},
        "output": str(output),
    }
    code = "import obstore, obstore.store, obstore.exceptions\n"
    code += "from trainhub_launch.data.store_work import carry_out\ncarry_out(obstore)"
    done = subprocess.run(
        [sys.executable, "-c", code], input=json.dumps(request), text=True, check=True, stdout=subprocess.PIPE
    )
    assert json.loads(done.stdout.splitlines()[-1])["done"]["files"] == len(FILES)
    return str(output)


def test_what_is_there_now_is_taken_and_named(place: Place, tmp_path: Path) -> None:
    manifest, folder = listed(place, tmp_path / "list"), tmp_path / "data"

    def fetch(attempt: str, *, uses_changed: bool) -> Fetch:
        options = {"uses_changed": uses_changed, "secret": place.secret, "manifest": manifest}
        key = f"{attempt * 32}-1"
        return Fetch(folder, place.store, "2024", attempt=key, list_key="key", peers=None, **options)

    exact = fetch("a", uses_changed=True)
    assert exact.done()["changes"]["count"] == 0
    assert [path.name for path in (folder / "lists").iterdir()] == ["key"]
    (folder / "lists" / "key").unlink()
    place.put("2024/deep/b.txt", b"changed")
    place.remove("2024/c.txt")
    place.put("2024/new.txt", b"not in the list")
    changed = fetch("b", uses_changed=True)
    assert changed.done()["changes"] == {
        "count": 2,
        "first": [["c.txt", True], ["deep/b.txt", False]],
    }
    assert changed.files() == {"a b.txt": b"a b.txt", "deep/b.txt": b"changed"}
    assert not list((folder / "lists").iterdir()), "the node has not the files of the version"
    again = fetch("c", uses_changed=False)
    assert again.done()["downloaded_files"] == 0, "it still has them from before"
    assert again.files() == {name.removeprefix("2024/"): content for name, content in FILES.items()}


def test_bytes_that_were_changed_never_become_those_of_the_version(server: S3Server, tmp_path: Path) -> None:
    manifest, folder = written_list(tmp_path, server, "2024/c.txt"), tmp_path / "data"
    server.objects[BUCKET]["2024/c.txt"] = b"changed"
    using = Fetch(folder, bucket(server), "2024", manifest=manifest, uses_changed=True, peers=NEVER)
    assert using.done()["changes"]["count"] == 1
    assert using.files() == {"c.txt": b"changed"}
    assert not list((folder / "swarms").iterdir()), "no node takes them from this one"
    strict = Fetch(folder, bucket(server), "2024", manifest=manifest, attempt=f"{'b2' * 16}-1")
    assert "has another 2024/c.txt than when it was listed" in strict.error()


def test_of_one_file_and_of_none_left(server: S3Server, tmp_path: Path) -> None:
    manifest, folder = written_list(tmp_path, server, "2024/c.txt"), tmp_path / "data"
    server.objects[BUCKET]["2024/c.txt"] = b"changed"
    options = {"manifest": manifest, "is_file": True, "uses_changed": True}
    fetch = Fetch(folder, bucket(server), "2024/c.txt", **options)
    assert Path(fetch.done()["path"]).read_bytes() == b"changed"
    del server.objects[BUCKET]["2024/c.txt"]
    error = Fetch(folder, bucket(server), "2024/c.txt", **options).error()
    assert error.startswith("The bucket birds has none of the files of this version any more.")


def test_of_very_many_only_some_are_named(server: S3Server, tmp_path: Path) -> None:
    keys = [f"2024/{number:04}.txt" for number in range(MAX_LOGGED + 50)]
    server.objects[BUCKET] = dict.fromkeys(keys, b"before")
    manifest = written_list(tmp_path, server, *keys)
    server.objects[BUCKET] = dict.fromkeys(keys, b"after")
    fetch = Fetch(tmp_path / "data", bucket(server), "2024", manifest=manifest, uses_changed=True)
    changes = fetch.done()["changes"]
    assert (changes["count"], len(changes["first"])) == (len(keys), MAX_LOGGED)
