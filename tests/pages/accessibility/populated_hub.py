"""A real hub with something on every page: GPUs at work, a fault and its alert, runs in every state, curves,
models, people."""

from __future__ import annotations

import pickle
import re
from functools import partial
from pathlib import Path
from typing import Any

import httpx

from simulator import Scenario, environment
from simulator.models import h100, in_mig_mode, works_while_held
from tests.environments.package_index import PackageIndex
from tests.hub import Hub, eventually
from tests.pages.logs.training_log import begin
from tests.pages.test_models import Dangerous, scanned
from tests.runs import submit, wait_for
from tests.signing_in import page_client
from tests.stores.s3_server import PUBLIC, S3Server
from tests.tracking.events.files import NAME, curve, event_file, new

TOO_HOT_CELSIUS = 95
TRAINS = r"""
import json, os, pathlib, time
checkpoints = pathlib.Path(os.environ["TRAINHUB_CHECKPOINT_DIR"])
(checkpoints / "unsure.pt").write_bytes(b"weights")
(checkpoints / ".new").write_bytes(b"weights")
(checkpoints / ".new").rename(checkpoints / "epoch-1.pt")
for step in range(30):
    print(f"step {step} \x1b[32mloss={1 / (step + 1):.3f}\x1b[0m", flush=True)
print("\x1b[33mwarning: no validation data\x1b[0m", flush=True)
saved = pathlib.Path("outputs/saved")
saved.mkdir(parents=True)
(saved / "weights.bin").write_bytes(bytes(range(256)))
(saved / "notes.md").write_text("# Notes\n\n| a | b |\n|---|---|\n| 1 | 2 |\n")
(saved / "table.csv").write_text("a,b\n1,2\n")
(saved / "history.json").write_text(json.dumps([{"loss": 1}, {"loss": 0.5}]))
time.sleep(3)
"""
DRAWING = (
    b'<svg xmlns="http://www.w3.org/2000/svg" width="90" height="50">'
    b'<rect width="90" height="50" fill="teal"/></svg>'
)
FAILS = "print('step 1')\ndef boom():\n    raise ValueError('no batch left')\nboom()\n"
WAITS = "import time\nprint('training', flush=True)\ntime.sleep(3600)\n"


class PopulatedHub:
    """`names` fills the parameters of addresses: `{completed}`, `{node}`, `{draft}` and so on."""

    def __init__(self, folder: Path) -> None:
        self.gpus = [works_while_held(h100(f"accessible {index}", processes="visible")) for index in range(2)]
        hot = h100("accessible hot", values={"temperature_c": TOO_HOT_CELSIUS})
        split = in_mig_mode(h100("accessible split"), 2)
        Scenario([*self.gpus, hot, split]).write(folder / "scenario")
        (folder / "index").mkdir()
        self.index = PackageIndex(folder / "index")
        pip = {"PIP_CONFIG_FILE": "/dev/null", "PIP_INDEX_URL": self.index.url}
        # No disk has so much free: an alert of the node, beside that of the GPU.
        alerts = {"ALERT_LASTING_SECONDS": "2", "ALERT_DISK_FREE_BYTES": str(2**60)}
        self.hub = Hub(folder / "data", **alerts, **pip, **environment(folder / "scenario"))
        self.hub.is_recorded = True
        self.names: dict[str, str] = {}

    def start(self) -> PopulatedHub:
        self.hub.start()
        self.client = self.hub.client()
        self.person = page_client(self.hub)
        node = eventually(self._node_with_gpus, 60, "the node reports its GPUs")
        self.names |= {"node": node["name"], "cluster": node["cluster"]}
        self.names |= {"gpu": self.gpus[0].uuid, "split": self._gpu(node, mig=True)}
        self._add_runs()
        self._add_models()
        self._add_people()
        self._add_drafts()
        self._add_environments()
        self._add_dataset()
        eventually(lambda: len(self._get("alerts/?state=firing")["results"]) > 1, 60, "both alerts fire")
        return self

    def stop(self) -> None:
        try:
            self.hub.cancel_all()
        finally:
            self.hub.stop()

    def _node_with_gpus(self) -> dict[str, Any] | None:
        nodes = self._get("nodes/")
        return next((node for node in nodes if len(node["gpus"]) >= len(self.gpus)), None)

    def _gpu(self, node: dict[str, Any], *, mig: bool) -> str:
        return next(str(gpu["uuid"]) for gpu in node["gpus"] if str(gpu["uuid"]).startswith("MIG-") == mig)

    def _add_runs(self) -> None:
        """Adds jobs in every state, a deleted one, and logged runs with curves."""
        failed = submit(self.hub, FAILS, display_name="diverges", tags={"why": "too few batches"})
        self.completed = submit(
            self.hub, TRAINS, display_name="classifier", experiment="digits", resources={"gpus_per_node": 1}
        )
        deleted = submit(self.hub, "print('hello')", display_name="thrown away")
        self.names["failed"] = str(wait_for(self.hub, failed, "Failed")["number"])
        self.names["completed"] = str(wait_for(self.hub, self.completed, "Completed")["number"])
        wait_for(self.hub, deleted, "Completed")
        self._ask("DELETE", f"runs/{deleted}/")
        running = submit(self.hub, WAITS, display_name="trains", resources={"gpus_per_node": 3})
        self.names["running"] = str(wait_for(self.hub, running, "Running")["number"])
        waiting = submit(self.hub, WAITS, display_name="waits", resources={"gpus_per_node": 3})
        self.names["waiting"] = str(wait_for(self.hub, waiting, "Queued")["number"])
        logged = []
        for place, lr in enumerate(("0.1", "0.1", "0.5")):
            run = begin(
                self.hub, f"sweep {place}", {"lr": lr, "seed": str(place)}, mlflow__note__content="# Idea"
            )
            run.log("eval/loss", [3.0 / step for step in range(1, 40)])
            run.log("eval/accuracy", [1 - 1 / step for step in range(1, 40)])
            for step in (1, 39):
                run.put(f"samples/step_{step}.svg", DRAWING)
                run.put(f"answers/step_{step}.csv", b"question,answer\n2 + 2,4\n")
                run.put(f"plots/step_{step}.json", b'{"data": [{"type": "bar", "y": [1, 2]}], "layout": {}}')
                run.put(
                    f"report_step_{step}.html", b"<!doctype html><html lang=en><title>Report</title><p>Good"
                )
            run.put(f"logs/{NAME}", event_file(*curve("loss", 3, kind=new)))
            run.end()
            logged.append(str(run.number))
        self.names |= {"logged": logged[0], "several": ",".join([*logged, self.names["completed"]])}
        self._arrange_panels(run.id)

    def _arrange_panels(self, run: str) -> None:
        info = self.client.get("/api/2.0/mlflow/runs/get", params={"run_id": run}).json()["run"]["info"]
        panels = [
            {"metrics": ["eval/loss", "eval/accuracy"], "width": 2, "is_pinned": True},
            {"metrics": ["eval/loss"], "x": "metrics.eval/accuracy"},
        ]
        body = {"panels": panels, "revision": 0}
        self._ask("PUT", f"experiments/{info['experiment_id']}/panels/", json=body)

    def _add_models(self) -> None:
        """Adds a model of a run with an alias, and one that is dangerous to load."""
        source = {"run": self.completed, "path": "saved"}
        self._ask("POST", "models/digits/versions/", json=source)
        self._ask("PUT", "models/digits/aliases/production/", json={"version": 1})
        # One version is scanned at a time: another one that comes meanwhile waits for the periodic task.
        scanned(self.hub, "digits")
        upload = [("files", ("model.pkl", pickle.dumps(Dangerous())))]
        self._ask("POST", "models/unsafe/versions/upload", files=upload)
        scanned(self.hub, "unsafe")

    def _add_people(self) -> None:
        """Adds a member, a token, a channel and clusters."""
        self._submit_form("/settings/members/", username="vera", role="viewer")
        self._submit_form("/settings/tokens/", name="laptop", scope="read", expires="30")
        channel = {"name": "team", "target": "https://example.com/hook", "events": "run.failed"}
        self._submit_form("/settings/notifications/add/own/", kind="webhook", **channel)
        (made,) = self._get("notification-channels/")
        self.names["channel"] = str(made["id"])
        self._ask("PUT", "secrets/hf-token/", json={"value": "hf_not-for-your-eyes"})
        self._ask("PUT", "secrets/short/", json={"value": "short"})
        self.names["secret"] = re.findall(r'id="secret-(\d+)"', self.person.get("/settings/secrets/").text)[0]
        datastore = {
            "name": "images",
            "kind": "folder",
            "path": "/mnt/images",
            "description": "Photos of birds",
        }
        self._ask("POST", "datastores/", json=datastore)
        self._submit_form("/settings/service-accounts/create/", name="ci-nightly", role="viewer")
        accounts = self.person.get("/settings/service-accounts/").text
        self.names["service"] = re.findall(r"/settings/service-accounts/(\d+)/", accounts)[0]
        self._ask("POST", "clusters/", json={"name": "spare"})
        # No Slurm answers there, which its pages say.
        partition = {"name": "hpc", "kind": "slurm", "slurm": {"partition": "main"}}
        self._ask("POST", "clusters/", json=partition)
        self._ask("PUT", "clusters/hpc/unix-accounts/", json={"person": "vera", "account": "vera"})

    def _add_drafts(self) -> None:
        address = self._submit_form("/runs/new/example/hello/").headers["location"]
        self.names["draft"] = address.split("/")[3]

    def _add_environments(self) -> None:
        """Makes two versions that are locked, and one that fails."""
        with self.index.serving():
            for version in ("1.0", "2.0"):
                self.index.add("tinylib", version)
            for requirement in ("tinylib==1.0", "tinylib==2.0", "no-such-package"):
                body = {"name": "digits", "requirements": ["# For the examples", requirement]}
                made = self._ask("POST", "environments/", json=body).json()
                address = f"environments/digits/versions/{made['version']}/"
                eventually(partial(self._is_resolved, address), 60, f"{requirement} is resolved")
        builds = "environments/digits/versions/1/build"
        (build,) = self._ask("POST", f"{builds}/", json={"nodes": [self.names["node"]]}).json()
        self.names["build"] = build["id"]
        # Its page is looked at, and nothing of it must run on.
        self._ask("POST", f"{builds}s/{build['id']}/cancel/")
        eventually(lambda: self._get(f"{builds}s/{build['id']}/")["ended_at"], 60, "the build has ended")

    def _add_dataset(self) -> None:
        """Makes two versions, which differ."""
        store = S3Server()
        store.objects[PUBLIC] = {f"images/{number:03d}.png": b"x" * number for number in range(150)}
        place = {"kind": "s3", "bucket": PUBLIC, "endpoint": store.url, "sign_in": "none"}
        self._ask("POST", "datastores/", json={"name": "bucket", **place})
        self._ask("POST", "datasets/", json={"name": "digits", "datastore": "bucket", "path": "images"})
        for version in (1, 2):
            eventually(partial(self._is_listed, version), 60, "the files are listed")
            store.objects[PUBLIC] |= {"images/new.png": b"new", "images/001.png": b"changed"}
            if version == 1:
                self._ask("POST", "datasets/digits/refresh/")
        self._ask("POST", "datastores/bucket/test/", json={"path": "images"})
        eventually(lambda: self._get("datastores/bucket/test/")["is_over"], 60, "the test is over")
        store.close()
        # An upload that waits for its other files.
        self._ask("POST", "datastores/", json={"name": "uploads", "kind": "hub"})
        self._ask("POST", "datasets/", json={"name": "dragged", "datastore": "uploads"})
        self._ask("PUT", "datasets/dragged/versions/1/upload/files/001.png", content=b"x")
        self._ask("POST", f"runs/{self.completed}/datasets/", json={"name": "learned", "path": "saved"})
        words = {"description": "What the classifier saved.", "tags": {"species": "digit", "split": "test"}}
        self._ask("PATCH", "datasets/learned/", json=words)

    def _is_listed(self, version: int) -> bool:
        return bool(self._get(f"datasets/digits/versions/{version}/")["state"] == "ready")

    def _is_resolved(self, address: str) -> bool:
        return bool(self._get(address)["state"] != "resolving")

    def _submit_form(self, path: str, **values: str) -> httpx.Response:
        """Returns the answer to a form of a page."""
        token = self.person.cookies[self.hub.cookie("csrftoken")]
        values["csrfmiddlewaretoken"] = token
        answer = self.person.post(path, data=values, headers={"Referer": self.hub.url})
        assert answer.status_code < httpx.codes.BAD_REQUEST, answer.text
        return answer

    def _get(self, path: str) -> Any:
        return self._ask("GET", path).json()

    def _ask(self, method: str, path: str, **options: Any) -> httpx.Response:
        answer = self.client.request(method, f"/api/v1/{path}", **options)
        assert answer.is_success, f"{path}: {answer.text}"
        return answer
