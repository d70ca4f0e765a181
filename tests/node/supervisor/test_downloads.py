"""Ranks read data that their node has downloaded: in namespaces and in containers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from tests.hub import eventually
from tests.node.builders import order, process
from tests.node.containers import place
from tests.node.data.processes import bucket
from tests.node.hub import FakeHub, Key
from tests.node.test_range import range_settings
from tests.stores.s3_server import BUCKET, S3Server
from tests.stores.s3_signatures import SECRET
from trainhub_launch.data.downloads import DataDownload
from trainhub_launch.order import NodeOrder
from trainhub_launch.plan import Reference
from trainhub_launch.states import ErrorKind
from trainhub_node.agent import Agent
from trainhub_node.containers.engine import DOCKER, PODMAN
from trainhub_node.settings import NodeSettings

READ = """
import os, sys
folder = sys.argv[1]
assert folder == os.environ['TRAINHUB_INPUT_BIRDS']
print(open(folder + '/labels.txt').read())
for path in (folder + '/labels.txt', folder + '/new.txt'):
    try:
        open(path, 'a')
    except OSError as error:
        print('not written')
cache = folder.split('/trees/')[0]
try:
    print(os.listdir(cache + '/objects'))
except OSError as error:
    print('cache not seen')
"""


# What programs do that keep an index of their data, and those that sort it.
CHANGE = """
import os, sys
folder = sys.argv[1]
print(sorted(os.listdir(folder)), sorted(os.listdir(folder + '/deep/er')))
open(folder + '/labels.cache', 'w').write('an index')
open(folder + '/deep/er/new.txt', 'w').write('more')
os.rename(folder + '/labels.txt', folder + '/deep/renamed.txt')
os.remove(folder + '/deep/er/other.txt')
os.makedirs(folder + '/made/here')
print(open(folder + '/deep/renamed.txt').read(), sorted(os.listdir(folder)), os.listdir(folder + '/deep/er'))
"""

CHANGED = ["['deep', 'labels.txt'] ['other.txt']", "sparrow ['deep', 'labels.cache', 'made'] ['new.txt']"]


@pytest.fixture
def server() -> Iterator[S3Server]:
    server = S3Server()
    server.objects[BUCKET] = {"2024/labels.txt": b"sparrow"}
    yield server
    server.close()


def downloading(hub: FakeHub, server: S3Server, script: str = READ) -> NodeOrder:
    birds = Reference("launch", "input_birds")
    rank = process(0, ("python", "train.py", "$TRAINHUB_INPUT_BIRDS"), TRAINHUB_INPUT_BIRDS=birds)
    download = DataDownload(bucket(server), "2024", "s3-key", "workspace 1")
    return replace(order(hub, {"train.py": script}, rank), downloads={"birds": download})


def named(settings: NodeSettings) -> list[bytes]:
    """Returns the contents that have names, which they get only after the ranks have started."""
    return sorted(path.read_bytes() for path in (settings.cache / "data" / "objects").rglob("*/*"))


@pytest.mark.in_containers(PODMAN, DOCKER)
def test_ranks_read_what_was_downloaded_and_cannot_change_it(
    hub: FakeHub, reachable: Path, start_agent: Callable[..., Agent], server: S3Server
) -> None:
    hub.secrets = {"datastore:s3-key": SECRET}
    settings: NodeSettings = range_settings(hub, reachable)
    start_agent(settings)
    key: Key = hub.give(downloading(hub, server))
    fact = hub.wait_done(key)
    assert not fact.error
    # A container has no overlay.
    new = ["not written"] * (place.current != place.Place())
    assert hub.log(key).decode().splitlines() == ["sparrow", "not written", *new, "cache not seen"]
    trees = settings.cache / "data" / "trees"
    eventually(lambda: not list(trees.glob("*/*")), 30, "what the run has seen of the cache stays in use")
    eventually(lambda: named(settings) == [b"sparrow"], 30, "its content has a name")


def test_what_ranks_write_beside_their_data_is_their_own(
    hub: FakeHub, reachable: Path, start_agent: Callable[..., Agent], server: S3Server
) -> None:
    server.objects[BUCKET]["2024/deep/er/other.txt"] = b"finch"
    hub.secrets = {"datastore:s3-key": SECRET}
    settings: NodeSettings = range_settings(hub, reachable)
    start_agent(settings)
    for _ in range(2):
        key = hub.give(downloading(hub, server, CHANGE))
        fact = hub.wait_done(key)
        assert not fact.error
        assert hub.log(key).decode().splitlines() == CHANGED
        changes = settings.attempts / f"{key[0]}-1" / "data_changes" / "upper" / "birds"
        assert (changes / "labels.cache").read_text() == "an index", "it counts as the disk of the run"
    eventually(lambda: named(settings) == [b"finch", b"sparrow"], 30, "the originals are as they were")


def test_wrong_credentials_end_the_run_before_its_ranks_start(
    hub: FakeHub, reachable: Path, start_agent: Callable[..., Agent], server: S3Server
) -> None:
    hub.secrets = {"datastore:s3-key": "wrong"}
    start_agent(range_settings(hub, reachable))
    fact = hub.wait_done(hub.give(downloading(hub, server)))
    assert fact.error_kind == ErrorKind.DATA
    assert "Input birds on node here: The bucket birds refuses these credentials" in fact.error
