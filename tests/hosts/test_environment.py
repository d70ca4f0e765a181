"""What each process of a run on two hosts really saw is what the stored plan says, and what the preview had
said."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from tests.hosts.bench import CLUSTER, Hosts
from trainhub_launch.plan import BASE_ENVIRONMENT, Reference, env_from_json

pytestmark = [pytest.mark.hosts, pytest.mark.mpi, pytest.mark.slow]
TELLING = """
import json, os, socket, time
os.makedirs("outputs", exist_ok=True)
name = os.environ.get("OMPI_COMM_WORLD_RANK") or os.environ.get("RANK")
cluster, own = {}, ""
if name is None:
    config = json.loads(os.environ["TF_CONFIG"])
    cluster, task = config["cluster"], config["task"]
    name, own = f"{task['type']}_{task['index']}", cluster[task["type"]][task["index"]]
with open(f"outputs/{name}.json", "w") as file:
    json.dump(dict(os.environ), file)
print("told", flush=True)
if "ps" in cluster and name != "chief_0":
    server = socket.create_server(("", int(own.rpartition(":")[2])))
    time.sleep(600)
# The chief's end is everybody's: it waits until all others have told.
for address in (address for role in ("worker", "ps") if "ps" in cluster for address in cluster[role]):
    host, _, port = address.rpartition(":")
    while True:
        try:
            socket.create_connection((host, int(port)), 1).close()
            break
        except OSError:
            time.sleep(0.1)
"""
KINDS: dict[str, dict[str, Any]] = {
    "pytorch per process": {
        "type": "pytorch",
        "communication_backend": "gloo",
        "process_count": 4,
        "node_count": 2,
    },
    "pytorch per node": {"type": "pytorch", "communication_backend": "gloo", "node_count": 2},
    "mpi": {"type": "mpi", "process_count_per_node": 2, "node_count": 2},
    "mpi, one a node": {"type": "mpi", "process_count_per_node": 1, "node_count": 2},
    "tensorflow workers": {"type": "tensorflow", "worker_count": 2},
    "tensorflow parameter server": {"type": "tensorflow", "worker_count": 2, "parameter_server_count": 1},
}
ADDED = {
    *BASE_ENVIRONMENT,
    "VIRTUAL_ENV",
    "LC_CTYPE",
    "TRAINHUB_CA_FILE",
    "MLFLOW_TRACKING_SERVER_CERT_PATH",
    "TRAINHUB_STOP_FILE",
    "TRAINHUB_PREEMPTION_FILE",
}
"""What a process has besides the plan: the node's base, the environment's folder, what Python itself sets,
and where on this node the authority of a hub with a certificate of its own, and the notices of a stop,
lie."""
MPI_OWN = re.compile(r"(OMPI|PMIX|PMI|PRTE|ORTE|OPAL|PRRTE|HWLOC)_|OPAL|IPATH_NO_BACKTRACE|HFI_NO_BACKTRACE")


def environment_of(hosts: Hosts, run: str, process: dict[str, Any]) -> dict[str, str]:
    rank, role = process["rank"], process["role"]
    name = str(rank) if "TF_CONFIG" not in process["env"] else None
    if name is None:
        task = json.loads(process["env"]["TF_CONFIG"])["task"]
        name = f"{task['type']}_{task['index']}"
    paths = [path for path in hosts.runs.outputs(run) if path.rpartition("/")[2] == f"{name}.json"]
    assert len(paths) == 1, f"{role} {name}: {hosts.runs.outputs(run)}"
    result: dict[str, str] = hosts.runs.client.get(f"/api/v1/runs/{run}/outputs/{paths[0]}").json()
    return result


def expected(value: str | Reference) -> re.Pattern[str]:
    """A value of the plan as a pattern: what is assigned at launch may be anything but nothing."""
    pieces = str(value).split(str(Reference("launch", "port")))
    return re.compile(".+".join(re.escape(piece) for piece in pieces), re.DOTALL)


@pytest.mark.parametrize("kind", KINDS)
def test_every_process_sees_its_plan(hosts: Hosts, kind: str) -> None:
    spec = {"distribution": KINDS[kind], "limits": {"grace_s": 1}}
    if KINDS[kind].get("type") == "tensorflow":
        spec["resources"] = {"cluster": CLUSTER, "node_count": 2}
    run = hosts.script(TELLING, **spec)
    ended = hosts.runs.ended(run, 90)
    assert ended["state"] == "Completed", ended["sentence"]
    stored = [
        process
        for command in ended["attempts"][-1]["plan"]["plan"]["commands"]
        for process in command["processes"]
    ]
    previewed = [
        process for command in ended["preview"]["plan"]["commands"] for process in command["processes"]
    ]
    assert len(stored) == len(previewed) >= 2
    for process, before in zip(stored, previewed, strict=True):
        snapshot = environment_of(hosts, run, process)
        _equals(snapshot, env_from_json(process["env"]), process["provided"])
        _equals(snapshot, env_from_json(before["env"]), before["provided"])


def _equals(snapshot: dict[str, str], env: dict[str, Any], provided: dict[str, str]) -> None:
    for name, value in (env | provided).items():
        assert expected(value).fullmatch(snapshot.get(name, "")), (
            f"{name}: {snapshot.get(name)!r} is not {value}"
        )
    # What Open MPI sets for its own use differs by version and is told by nobody.
    others = {
        name
        for name in snapshot
        if not (name in env or name in provided or name in ADDED or MPI_OWN.match(name))
    }
    assert not others
