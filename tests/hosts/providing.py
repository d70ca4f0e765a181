"""A provider whose machines are the bench's: `provision` takes one that is free, `release` ends all that runs on it."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tests.hosts import processes
from tests.hosts.bench import TRAINHUB_NODE, Hosts
from tests.hub import CACHE, PROJECT
from tests.journeys.runs import Runs

CLUSTER = "grown"
ASKED = """
import fcntl, json, os, pathlib, subprocess, sys, time
here = pathlib.Path(__file__).parent
asked = json.load(sys.stdin)
config = json.loads((here / "config.json").read_text())
verb = pathlib.Path(__file__).name

def note(**more):
    with open(here / "calls", "a") as file:
        file.write(json.dumps({"verb": verb, "name": asked["name"], **more}) + "\\n")

def taken():
    path = here / "taken.json"
    return json.loads(path.read_text()) if path.exists() else {}

def write(found):
    (here / "aside").write_text(json.dumps(found))
    (here / "aside").replace(here / "taken.json")

lock = open(here / "lock", "w")
fcntl.flock(lock, fcntl.LOCK_EX)
"""
PROVISION = """
found = taken()
host = found.get(asked["name"]) or next((name for name in config["hosts"] if name not in found.values()), None)
if host is None:
    sys.exit("all machines are taken")
write({**found, asked["name"]: host})
fcntl.flock(lock, fcntl.LOCK_UN)
inside = ["nsenter", "-t", str(config["hosts"][host]), "-a", "--", *config["program"]]
env = {**os.environ, **config["env"]}
folder = "/tmp/" + asked["name"]
subprocess.run(
    [*inside, "join", asked["hub_url"], "--token", asked["join_token"], "--dir", folder], check=True, env=env, cwd="/",
    stdin=subprocess.DEVNULL, stdout=sys.stderr,
)
with open(here / (asked["name"] + ".log"), "ab") as log:
    subprocess.Popen(
        [*inside, "run", "--dir", folder], env=env, cwd="/", stdin=subprocess.DEVNULL, stdout=log, stderr=log,
        start_new_session=True,
    )
note(host=host)
print(json.dumps({"id": host}))
"""
RELEASE = """
import signal
found = taken()
host = found.get(asked["name"])
if host is not None:
    init = config["hosts"][host]
    space = os.readlink(f"/proc/{init}/ns/pid")
    for entry in pathlib.Path("/proc").iterdir():
        try:
            if entry.name.isdecimal() and int(entry.name) != init and os.readlink(entry / "ns/pid") == space:
                os.kill(int(entry.name), signal.SIGKILL)
        except (FileNotFoundError, ProcessLookupError, PermissionError):
            pass
    write({name: other for name, other in found.items() if name != asked["name"]})
note(host=host)
print("{}")
"""


class GrowingHosts(Hosts):
    """A hub with no node on these hosts; a provider brings them in."""

    def __init__(self, folder: Path, machines: int, settings: Mapping[str, str]) -> None:
        super().__init__(folder, sys.executable, machines, {"NODE_PROVIDERS": str(folder / "providers"), **settings})
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
            "TRAINHUB_NODE_CACHE": str(CACHE / "node"), "TRAINHUB_NODE_PYTHON": sys.executable, "PYTHONPATH": str(PROJECT),
        }
        config = {"hosts": {host.name: host.init for host in self.hosts}, "program": TRAINHUB_NODE, "env": env}
        (self.folder / "config.json").write_text(json.dumps(config))
        self.hub.start()
        self.runs = Runs(self.hub)
        return self

    def script_of(self, verb: str, text: str) -> None:
        path = self.folder / verb
        aside = path.with_name("new")
        aside.write_text(f"#!{sys.executable} -S\n{ASKED}\n{text}")
        aside.chmod(0o755)
        aside.replace(path)

    def cluster(self) -> dict[str, Any]:
        found: dict[str, Any] = self.runs.get(f"/clusters/{CLUSTER}/")
        return found

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
        return sum(any("trainhub_node run" in processes.command(pid) for pid in host.pids()) for host in self.hosts)

