"""A provider whose machines are the bench's: `provision` takes a free one, `release` ends everything on
it."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx

from tests.caching import CACHE
from tests.hosts import processes
from tests.hosts.bench import TRAINHUB_NODE, Hosts
from tests.hub import PROJECT
from tests.journeys.runs import Runs

CLUSTER = "grown"
READ_REQUEST = """
import fcntl, json, os, pathlib, subprocess, sys, time
here = pathlib.Path(__file__).parent
request = json.load(sys.stdin)
config = json.loads((here / "config.json").read_text())
verb = pathlib.Path(__file__).name

def record_call(**more):
    with open(here / "calls", "a") as file:
        file.write(json.dumps({"verb": verb, "name": request["name"], **more}) + "\\n")

def read_assignments():
    path = here / "taken.json"
    return json.loads(path.read_text()) if path.exists() else {}

def write(assignments):
    (here / "aside").write_text(json.dumps(assignments))
    (here / "aside").replace(here / "taken.json")

lock = open(here / "lock", "w")
fcntl.flock(lock, fcntl.LOCK_EX)
"""
PROVISION = """
assignments = read_assignments()
host = assignments.get(request["name"])
host = host or next((name for name in config["hosts"] if name not in assignments.values()), None)
if host is None:
    sys.exit("all machines are taken")
agent_log = here / (request["name"] + ".log")
if agent_log.exists():  # requested before, by a hub that did not hear the answer
    record_call(host=host)
    print(json.dumps({"id": host}))
    sys.exit()
write({**assignments, request["name"]: host})
fcntl.flock(lock, fcntl.LOCK_UN)
inside = ["nsenter", "-t", str(config["hosts"][host]), "-a", "--", *config["program"]]
env = {**os.environ, **config["env"]}
folder = "/tmp/" + request["name"]
subprocess.run(
    [*inside, "join", request["hub_url"], "--token", request["join_token"], "--dir", folder, "--replace"],
    check=True, env=env, cwd="/", stdin=subprocess.DEVNULL, stdout=sys.stderr,
)
with open(agent_log, "ab") as log:
    subprocess.Popen(
        [*inside, "run", "--dir", folder], env=env, cwd="/", stdin=subprocess.DEVNULL, stdout=log, stderr=log,
        start_new_session=True,
    )
record_call(host=host)
print(json.dumps({"id": host}))
"""
RELEASE = """
import signal
assignments = read_assignments()
host = assignments.get(request["name"])
if host is not None:
    init = config["hosts"][host]
    space = os.readlink(f"/proc/{init}/ns/pid")
    for entry in pathlib.Path("/proc").iterdir():
        try:
            if entry.name.isdecimal() and int(entry.name) != init and os.readlink(entry / "ns/pid") == space:
                os.kill(int(entry.name), signal.SIGKILL)
        except (FileNotFoundError, ProcessLookupError, PermissionError):
            pass
    write({name: other for name, other in assignments.items() if name != request["name"]})
    (here / (request["name"] + ".log")).unlink(missing_ok=True)
record_call(host=host)
print("{}")
"""


class GrowingHosts(Hosts):
    """A hub with no node on these hosts; a provider brings them in."""

    def __init__(self, folder: Path, machines: int, settings: Mapping[str, str]) -> None:
        super().__init__(
            folder, sys.executable, machines, {"NODE_PROVIDERS": str(folder / "providers"), **settings}
        )
        self.providers = folder / "providers"
        self.folder = self.providers / "hosts"

    def start(self) -> GrowingHosts:
        self.bridge.build()
        for host in self.hosts:
            host.boot()
        self.folder.mkdir(parents=True, mode=0o755)
        self.script_of("provision", PROVISION)
        self.script_of("release", RELEASE)
        env = {
            "TRAINHUB_NODE_CACHE": str(CACHE / "node"),
            "TRAINHUB_NODE_CONTAINERS": "off",
            "TRAINHUB_NODE_PYTHON": sys.executable,
            "PYTHONPATH": str(PROJECT),
        }
        config = {
            "hosts": {host.name: host.init for host in self.hosts},
            "program": TRAINHUB_NODE,
            "env": env,
        }
        (self.folder / "config.json").write_text(json.dumps(config))
        self.hub.start()
        self.runs = Runs(self.hub)
        return self

    def script_of(self, verb: str, text: str) -> None:
        path = self.folder / verb
        aside = path.with_name("new")
        aside.write_text(f"#!{sys.executable} -S\n{READ_REQUEST}\n{text}")
        aside.chmod(0o755)
        aside.replace(path)

    def cluster(self) -> dict[str, Any]:
        result: dict[str, Any] = self.runs.get(f"/clusters/{CLUSTER}/")
        return result

    def states(self) -> list[str]:
        return sorted(machine["state"] for machine in self.cluster()["machines"])

    def journal(self) -> str:
        return "\n".join(event["message"] for event in self.cluster()["events"])

    def called(self, verb: str) -> list[dict[str, Any]]:
        path = self.folder / "calls"
        calls = [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []
        return [call for call in calls if call["verb"] == verb]

    def agents(self) -> int:
        """How many of the hosts run an agent."""
        return sum(
            any("trainhub_node run" in processes.command(pid) for pid in host.pids()) for host in self.hosts
        )


PATIENCE = {
    "NODE_UNREACHABLE_AFTER": "3",
    "NODE_LOST_AFTER": "10",
    "PROVIDER_PAUSE": "1",
    "PROVIDER_TRIES": "2",
}
HELLO = "import os; print('rank', os.environ.get('RANK'), 'of', os.environ.get('WORLD_SIZE'), flush=True)"
THREE = {"type": "pytorch", "communication_backend": "gloo", "process_count": 3, "node_count": 3}
SETTINGS = {"provider": "hosts", "min_nodes": 0, "max_nodes": 3, "idle_s": 4, "node_gpus": 0, "node_slots": 1}


@contextmanager
def growing(folder: Path, **patience: str) -> Iterator[GrowingHosts]:
    """Three machines, and a cluster that has none of them yet."""
    built = GrowingHosts(folder, 3, {**PATIENCE, **patience})
    try:
        built.start()
        answer = built.runs.client.post("/api/v1/clusters/", json={"name": CLUSTER, **SETTINGS})
        assert answer.status_code == httpx.codes.CREATED, answer.text
        yield built
    finally:
        built.stop()


def submit(hosts: GrowingHosts, **spec: Any) -> str:
    return hosts.runs.script(HELLO, resources={"cluster": CLUSTER}, **{"distribution": THREE, **spec})
