"""The process that downloads, as the child of an attempt starts it."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from tests.stores.s3_server import BUCKET, MODIFIED_AT, S3Server, etag
from tests.stores.s3_signatures import KEY_ID, SECRET
from trainhub_launch.data.manifests import ListedFile, ManifestWriter
from trainhub_launch.data.stores import S3, SignIn, Store
from trainhub_node.bootstrap_command import AGENT_WRAPPER
from trainhub_node.data.data_cache import DataCache
from trainhub_node.data.node_cache import find_obstore

AGENT = "agent"
ATTEMPT = f"{'a1' * 16}-1"


def bucket(server: S3Server, name: str = BUCKET) -> Store:
    settings = {"bucket": name, "endpoint": server.url, "access_key_id": KEY_ID}
    return Store(S3, SignIn.SECRET, settings)


def written_list(folder: Path, server: S3Server, *keys: str) -> str:
    """The path of a list of these files, as they are now."""
    path = folder / "manifest"
    with path.open("wb") as output:
        writer = ManifestWriter(output)
        for key in keys:
            content = server.objects[BUCKET][key]
            writer.write(ListedFile(key.rpartition("/")[2], len(content), etag(content), MODIFIED_AT))
        writer.flush()
    return str(path)


def name_contents(folder: Path) -> None:
    """Does what the agent has a process do after a download."""
    subprocess.run(naming_command(folder), check=True, env={})


def naming_command(folder: Path) -> list[str]:
    return [sys.executable, *AGENT_WRAPPER[1:], "contents", str(folder)]


class Fetch:
    """A download of everything below `path` into the cache in `folder`. `lines`: what it has written, once it
    has ended."""

    def __init__(self, folder: Path, store: Store, path: str = "", **changes: Any) -> None:
        self.cache = DataCache(str(folder), AGENT)
        request = {
            "store": store.to_json(),
            "path": path,
            "secret": SECRET,
            "scope": "workspace 1",
            "input": "birds",
            "attempt": ATTEMPT,
            "cache": str(folder),
            "agent": AGENT,
            "limit": 10**12,
            "manifest": "",
            "list_key": "",
            "is_file": False,
            "copies": False,
            "group": None,
            "owner": None,
            **changes,
        }
        self.tree = Path(self.cache.tree(request["attempt"])) / "birds"
        self.process = subprocess.Popen(
            [sys.executable, *AGENT_WRAPPER[1:], "data", find_obstore()],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={},
        )
        self.lines: list[dict[str, Any]] = []
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps(request))
        self.process.stdin.close()

    def result(self) -> dict[str, Any]:
        """Waits for its end; the last line that it wrote."""
        assert self.process.stdout is not None
        self.lines = [json.loads(line) for line in self.process.stdout]
        assert self.process.wait(60) == 0
        last: dict[str, Any] = self.lines[-1]
        return last

    def done(self) -> dict[str, Any]:
        result = self.result()
        assert "done" in result, result
        done: dict[str, Any] = result["done"]
        return done

    def error(self) -> str:
        return str(self.result()["error"])

    def files(self) -> dict[str, bytes]:
        return {
            str(path.relative_to(self.tree)): path.read_bytes()
            for path in self.tree.rglob("*")
            if path.is_file()
        }
