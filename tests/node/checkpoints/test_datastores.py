"""Checkpoints that an agent writes into a datastore."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from pathlib import Path

import pytest

from tests.node.builders import script
from tests.node.checkpoints.test_collector import SAVE
from tests.node.data.processes import bucket
from tests.node.hub import FakeHub
from tests.stores.s3_server import BUCKET, S3Server
from tests.stores.s3_signatures import SECRET
from trainhub_launch.data.checkpoint_order import CheckpointOrder
from trainhub_launch.data.outputs import StoreFolder
from trainhub_node.agent import Agent
from trainhub_node.attempts.attempt_list import Key


@pytest.mark.parametrize("secret", [SECRET, "another"])
def test_is_written_into_a_datastore_or_torn_with_the_reason(
    hub: FakeHub, agent: Agent, s3_server: S3Server, secret: str
) -> None:
    hub.secrets = {"datastore:s3-key": secret}
    store = StoreFolder(bucket(s3_server), "run/checkpoints", "s3-key")
    saved = script(hub, f"{SAVE}save('last.pt', b'weights')")
    key = hub.give(replace(saved, checkpoint=CheckpointOrder("checkpoints", store=store)))
    assert not hub.wait_done(key).error
    part, objects = hub.checkpoints.parts[1], s3_server.objects[BUCKET]
    if secret == SECRET:
        assert objects == {f"run/checkpoints/1/{part['stored'][:16]}/last.pt": b"weights"}
        assert part["files"] == [
            {"path": "last.pt", "size": 7, "sha256": hashlib.sha256(b"weights").hexdigest()}
        ]
    else:
        assert part["files"] == []
        assert part["torn"].startswith(
            "it could not be written into the datastore: The bucket birds does not"
        )
        assert objects == {}
    # It never goes to the hub, whose disk it might fill.
    assert hub.blobs.keys() <= {saved.snapshot}


STEPS = """
import os, pathlib, time
folder = pathlib.Path('checkpoints')
for step in (1, 2):
    (folder / f'step-{step}').mkdir()
    (folder / f'step-{step}' / 'frozen.bin').write_bytes(bytes(2_000_000))
    (folder / f'step-{step}' / 'head.bin').write_bytes(bytes([step]) * 2_000_000)
    (folder / f'step-{step}' / '.complete').touch()
    while not os.path.exists(f'go-{step}'): time.sleep(0.01)
"""


def give_steps(hub: FakeHub, server: S3Server) -> Key:
    hub.secrets = {"datastore:s3-key": SECRET}
    order = CheckpointOrder("checkpoints", store=StoreFolder(bucket(server), "run/checkpoints", "s3-key"))
    return hub.give(replace(script(hub, STEPS), checkpoint=order))


def go(agent: Agent, key: Key, step: int) -> None:
    (Path(agent.settings.attempts) / f"{key[0]}-{key[1]}" / "work" / f"go-{step}").touch()


def files_of(hub: FakeHub, number: int) -> dict[str, str]:
    """Path -> key of the files of a part in the store."""
    part = hub.checkpoints.parts[number]
    folder = f"{number}/{part['stored'][:16]}"
    return {file["path"]: file.get("key", f"{folder}/{file['path']}") for file in part["files"]}


def objects(server: S3Server) -> set[str]:
    return {key.removeprefix("run/checkpoints/") for key in server.objects[BUCKET]}


def test_a_file_that_stays_the_same_is_written_once(hub: FakeHub, agent: Agent, s3_server: S3Server) -> None:
    key = give_steps(hub, s3_server)
    hub.wait(lambda: 1 in hub.checkpoints.parts)
    go(agent, key, 1)
    hub.wait(lambda: 2 in hub.checkpoints.parts)
    first, second = files_of(hub, 1), files_of(hub, 2)
    assert first["step-1/frozen.bin"] == second["step-2/frozen.bin"]
    assert objects(s3_server) == {*first.values(), *second.values()}
    assert len(objects(s3_server)) == 5, "the small marker is there for each"

    # The first is not kept any more; the second one still has a file of it.
    hub.checkpoints.surplus = {"shared_surplus": {"1": [first["step-1/frozen.bin"]]}}
    go(agent, key, 2)
    assert not hub.wait_done(key).error
    assert objects(s3_server) == set(second.values())
    assert hub.checkpoints.removals[-1] == {"numbers": [], "problem": "", "shared": [1]}


def test_it_is_written_again_where_the_hub_no_longer_keeps_it(
    hub: FakeHub, agent: Agent, s3_server: S3Server
) -> None:
    key = give_steps(hub, s3_server)
    hub.wait(lambda: 1 in hub.checkpoints.parts)
    hub.checkpoints.shares = False
    go(agent, key, 1)
    hub.wait(lambda: 2 in hub.checkpoints.parts)
    go(agent, key, 2)
    assert not hub.wait_done(key).error
    assert all(path.startswith("2/") for path in files_of(hub, 2).values())
    assert len(objects(s3_server)) == 6
