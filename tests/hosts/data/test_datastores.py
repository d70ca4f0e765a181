"""Runs on two hosts read a folder that both have, under the name that its workspace gave it."""

from __future__ import annotations

import httpx
import pytest

from tests.hosts.bench import Hosts

pytestmark = [pytest.mark.hosts, pytest.mark.slow]
DISTRIBUTION = {"type": "pytorch", "communication_backend": "gloo", "process_count": 2, "node_count": 2}
# Each host has its own /tmp.
FOLDER = "/tmp/images"
TRAIN = """
import argparse, os, pathlib
parser = argparse.ArgumentParser()
parser.add_argument('--data-folder')
folder = parser.parse_args().data_folder
assert folder == os.environ['TRAINHUB_INPUT_BIRDS'] == os.environ['AZUREML_DATAREFERENCE_birds']
labels = (pathlib.Path(folder) / 'labels.txt').read_text().strip()
print('rank', os.environ['RANK'], 'reads', labels, flush=True)
"""
SPEC = {
    "arguments": ["--data-folder", "$TRAINHUB_INPUT_BIRDS"],
    "inputs": {"birds": {"datastore": "images", "path": "birds"}},
    "distribution": DISTRIBUTION,
}


def test_a_script_finds_its_data_on_every_host_and_a_missing_folder_is_named(hosts: Hosts) -> None:
    for host in hosts.hosts:
        host.run(
            "sh", "-c", f"mkdir -p {FOLDER}/birds && echo birds of {host.name} > {FOLDER}/birds/labels.txt"
        )
    body = {"name": "images", "kind": "folder", "path": FOLDER}
    assert hosts.runs.client.post("/api/v1/datastores/", json=body).status_code == httpx.codes.CREATED

    run = hosts.script(TRAIN, **SPEC)
    ended = hosts.runs.ended(run, 120)
    logs = [hosts.runs.log(run, f"70_driver_log_{rank}.txt").decode() for rank in range(2)]
    assert ended["state"] == "Completed", (ended["sentence"], logs)
    assert logs == [f"rank {rank} reads birds of {host.name}\n" for rank, host in enumerate(hosts.hosts)]

    hosts.hosts[1].run("rm", "-r", f"{FOLDER}/birds")
    ended = hosts.runs.ended(hosts.script(TRAIN, **SPEC), 120)
    assert ended["state"] == "Failed"
    assert f"Input birds: {FOLDER}/birds on node {hosts.hosts[1].name} is not there" in ended["sentence"]
