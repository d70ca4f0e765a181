"""A job, a logged run, a model and a node that say hostile things wherever they may say anything."""

from __future__ import annotations

import json
import time
from urllib.parse import quote

import httpx
import msgpack

from tests.hub import Hub
from tests.pages.logs.training_log import Logged, begin
from tests.runs import submit, told, wait_for
from trainhub_launch.machine import GpuFact, Heartbeat, Interpreter, NetworkPort
from trainhub_launch.report import Report
from trainhub_launch.telemetry import GpuEvent, GpuProcess

MARKUP = '"\'><img src=x onerror=alert(1)><svg/onload=alert(2)><a href="javascript:alert(3)">x</a>'
SHORT = "<svg/onload=alert(4)>"
ESCAPES = "\x1b[31mred\x1b[0m \x1b]8;;javascript:alert(5)\x07click\x1b]8;;\x07 \x1b]0;title\x07"
SCRIPT = f"""import sys
print({MARKUP!r}, flush=True)
print({ESCAPES!r}, flush=True)
raise ValueError({MARKUP!r} + {ESCAPES!r})
"""
MARKDOWN = (
    f"# {MARKUP}\n[a](javascript:alert(6)) <javascript:alert(7)> ![b](javascript:alert(8)) "
    "[c](data:text/html,x)\n"
)
FILES = {
    f"{SHORT}.txt": MARKUP,
    "note.md": MARKDOWN,
    "table.csv": f"{SHORT},b\n{MARKUP},=cmd()\n",
    "rows.json": json.dumps([{SHORT: MARKUP}]),
    "text.json": json.dumps({SHORT: MARKUP}),
    "page.html": MARKUP,
    "figure.json": json.dumps(
        {"data": [{"y": [1, 2], "name": MARKUP, "text": MARKUP}], "layout": {"title": {"text": MARKUP}}}
    ),
    "picture.svg": (
        "<svg xmlns='http://www.w3.org/2000/svg' width='9' onload='alert(9)'><script>alert(10)</script></svg>"
    ),
}
EXPORTS = ("export/", "export/?to=dstack")


class Hostile:
    """A job, a logged run, a model and a node that say hostile things everywhere."""

    def __init__(self, hub: Hub) -> None:
        self.hub = hub
        self.job = submit(hub, SCRIPT, display_name=MARKUP[:150], tags={"note": MARKUP})
        self.logged = self._log()
        self._name_people()
        self._register()
        self._add_environment()
        self._add_dataset()
        self.node = self._join()
        assert wait_for(hub, self.job)["state"] == "Failed"

    def _log(self) -> Logged:
        run = begin(
            self.hub, MARKUP, {"lr": MARKUP, "size": "3"}, other=MARKUP, mlflow__note__content=MARKDOWN
        )
        run.log("loss", [1, 2, 3])
        info = run.client.get("/api/2.0/mlflow/runs/get", params={"run_id": run.id}).json()["run"]["info"]
        panels = [
            {"metrics": ["loss", MARKUP], "title": MARKUP[:100]},
            {"metrics": ["loss"], "x": f"metrics.{SHORT}"},
        ]
        run.client.put(
            f"/api/v1/experiments/{info['experiment_id']}/panels/", json={"panels": panels, "revision": 0}
        ).raise_for_status()
        self.folder = f"{info['experiment_id']}/{run.id}/artifacts"
        for name, content in FILES.items():
            url = f"/api/2.0/mlflow-artifacts/artifacts/{self.folder}/{quote(name)}"
            run.client.put(url, content=content.encode()).raise_for_status()
        run.end()
        return run

    def _name_people(self) -> None:
        """A person with a display name, and a workspace to which somebody is invited."""
        self.hub.manage("workspace", "create", MARKUP[:100], "--owner", "admin", "--slug", "hostile")
        self.hub.manage("workspace", "invite", "hostile")
        shell = (
            "from workspaces.models import *\n"
            f"User.objects.filter(username='admin').update(display_name={MARKUP[:100]!r})"
        )
        self.hub.manage("shell", "-c", shell)

    def _register(self) -> None:
        call = "/api/2.0/mlflow"
        client = self.logged.client
        tags = [{"key": "other", "value": MARKUP}]
        model = {"name": "hostile", "description": MARKDOWN, "tags": tags}
        client.post(f"{call}/registered-models/create", json=model).raise_for_status()
        version = {**model, "source": f"runs:/{self.logged.id}/note.md", "run_id": self.logged.id}
        client.post(f"{call}/model-versions/create", json=version).raise_for_status()

    def _join(self) -> str:
        """A node of an own cluster, whose every word is markup."""
        token = self.hub.manage("node", "token", "hostile", "--cluster", "hostile").stdout.splitlines()[0]
        secret = token.partition(".")[0]
        with self.hub.client("") as machine:
            asked = {"token": secret, "name": "", "hostname": MARKUP[:200], "replace": False}
            node = machine.post("/api/v1/node/enrol/", json=asked).raise_for_status().json()
            headers = {"Authorization": f"Bearer {node['token']}"}
            for sequence in (1, 2):
                body = msgpack.packb(self._report(sequence).to_wire())
                machine.post("/api/v1/node/report/", content=body, headers=headers).raise_for_status()
        return str(node["name"])

    def _report(self, sequence: int) -> Report:
        process = GpuProcess(pid=4, name=MARKUP, user=SHORT, memory_bytes=1)
        gpu = GpuFact(
            uuid=f"GPU-{SHORT}",
            index=0,
            name=SHORT,
            memory_bytes=2**30,
            processes=(process,),
            state="lost",
            error=MARKUP,
            profile=SHORT,
        )
        beat = Heartbeat(
            agent_version=SHORT,
            hostname=SHORT,
            address=SHORT,
            interface=SHORT,
            cores=1,
            slots=1,
            memory_bytes=1,
            memory_used_bytes=1,
            cpu_pct=1,
            disk_free_bytes=1,
            gpus=(gpu,),
            interpreters=(Interpreter(SHORT, SHORT),),
            mpi=SHORT,
            run_as=SHORT,
            boot_id=SHORT,
            network_ports=(NetworkPort(SHORT, 1, SHORT, SHORT, SHORT),),
            driver=SHORT,
            cuda=SHORT,
            nvml=MARKUP,
        )
        event = GpuEvent(sequence, time.time(), "xid", gpu.uuid, 79, MARKUP)
        return Report(agent="a" * 32, sequence=sequence, sent_at=time.time(), heartbeat=beat, events=(event,))

    def _add_environment(self) -> None:
        body = {"name": "hostile", "requirements": [f"# </textarea></pre>{MARKUP}", "no-such-package"]}
        with self.hub.client() as client:
            answer = client.post("/api/v1/environments/", json=body)
            assert answer.is_success, answer.text

    def _add_dataset(self) -> None:
        with self.hub.client() as client:
            body = {"name": "hostile"}
            client.post(f"/api/v1/runs/{self.logged.id}/datasets/", json=body).raise_for_status()
            words = {"description": MARKUP, "tags": {SHORT.replace("=", ""): MARKUP}}
            client.patch("/api/v1/datasets/hostile/", json=words).raise_for_status()

    def addresses(self) -> dict[str, list[str]]:
        """Pages that show what was said, by area."""
        number, logged = told(self.hub, self.job)["number"], self.logged.number
        files = [str(httpx.URL(f"/runs/{logged}/outputs/", params={"file": name})) for name in FILES]
        both = f"/compare/?runs={number},{logged}"
        tabs = ("", "members/", "plan/", "outputs/", "events/", "spec/", "gpus/")
        return {
            "job": [f"/runs/{number}/{tab}" for tab in (*tabs, *EXPORTS)],
            "logged run": [f"/runs/{logged}/{tab}" for tab in ("metrics/", "params/", "notes/", "outputs/")],
            "files": files,
            "lists": [
                "/",
                "/runs/",
                "/runs/?q=svg",
                "/search/?q=svg",
                "/experiments/",
                "/environments/",
                "/environments/system/",
                "/environments/hostile/",
                "/environments/hostile/edit/",
                "/environments/hostile/versions/1/",
                "/usage/",
                both,
                f"{both}&sections=params,metrics,attributes,relations",
            ],
            "people": [
                "/settings/",
                "/settings/profile/",
                "/settings/invitations/",
                "/settings/service-accounts/",
                "/people/",
                "/people/1/",
                "/workspaces/",
            ],
            "data": [
                "/data/",
                str(httpx.URL("/data/", params={"tag": MARKUP})),
                "/data/sets/hostile/",
                "/data/sets/hostile/1/",
                str(httpx.URL("/data/outputs/", params={"run": MARKUP, "path": MARKUP})),
            ],
            "models": ["/models/", "/models/hostile/", "/models/hostile/versions/1/"],
            "machines": [
                "/clusters/",
                "/clusters/hostile/",
                f"/nodes/{self.node}/",
                f"/gpus/{quote('GPU-' + SHORT)}/",
                "/alerts/",
            ],
        }

    def words(self) -> dict[str, list[str]]:
        """What stands on a page as text."""
        pages = self.addresses()
        return {
            pages["job"][0]: [MARKUP[:40]],
            pages["logged run"][1]: [MARKUP[:40]],
            pages["files"][0]: [MARKUP[:40]],
            "/models/hostile/": ["<img src=x"],
            "/people/1/": [MARKUP[:40]],
            "/data/sets/hostile/": [MARKUP[:40]],
            "/data/sets/hostile/1/": [SHORT],
            "/environments/hostile/versions/1/": [MARKUP[:40]],
            f"/nodes/{self.node}/": [SHORT],
        }
