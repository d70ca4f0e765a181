"""The export script as a node runs it, with a hub that only gives files: its exit code, its log, its
report."""

from __future__ import annotations

import hashlib
import json
import shutil
import ssl
import subprocess
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from tests.hub import PROJECT

SCRIPT = PROJECT / "registry" / "exports" / "script"
FILES = "api/v1/models/digits/versions/3/files"
WANTED: dict[str, Any] = {
    "model": "digits",
    "version": 3,
    "factory": "",
    "inputs": [{"name": "", "shape": [2, 4], "dtype": "float32"}],
    "example": "",
    "dynamic": {"": {"0": "batch"}},
    "relative": 1e-4,
    "absolute": 1e-5,
    "opset": None,
    "script_folder": "",
}
NET = """
import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Dropout(0.5), nn.Linear(16, 3))

    def forward(self, x):
        return self.layers(x)


def make():
    torch.manual_seed(0)
    return Net()
"""


WARM = """
import json, os, runpy, sys, traceback
import onnx, onnxruntime, onnxscript, torch, torch._dynamo, torch.onnx
for line in sys.stdin:
    asked = json.loads(line)
    child = os.fork()
    if not child:
        log = os.open(asked["log"], os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        os.dup2(log, 1), os.dup2(log, 2)
        os.chdir(asked["folder"])
        os.environ.update(asked["env"])
        sys.path[:0] = asked["path"]
        code = 0
        try:
            if asked["program"]:
                exec(asked["program"], sys.modules["__main__"].__dict__)
            else:
                runpy.run_path("export_onnx.py", run_name="__main__")
        except SystemExit as end:
            code = end.code or 0
        except BaseException:
            traceback.print_exc()
            code = 1
        sys.stdout.flush()
        os._exit(code)
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
"""


class Warm:
    """An interpreter that has imported torch and onnx once, and forks for whatever it is asked: each import
    takes seconds."""

    def __init__(self, python: str) -> None:
        command = [python, "-W", "ignore", "-c", WARM]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def run(
        self, folder: Path, log: Path, *, program: str = "", path: tuple[Path, ...] = (), **env: str
    ) -> int:
        """The exit code of `program`, or of export_onnx.py there."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        asked = {
            "folder": str(folder),
            "log": str(log),
            "program": program,
            "path": [str(item) for item in path],
            "env": env,
        }
        self._process.stdin.write(json.dumps(asked) + "\n")
        self._process.stdin.flush()
        return int(self._process.stdout.readline())

    def close(self) -> None:
        self._process.communicate()


@dataclass(frozen=True)
class Ended:
    code: int
    log: str
    report: dict[str, Any]
    folder: Path

    @property
    def refusal(self) -> str:
        return str(self.report.get("refusal", ""))


class _Quiet(SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: Any) -> None:
        pass


class Standalone:
    """`saved` makes files of a version with a Python program; `export` runs the script on one of them."""

    def __init__(self, folder: Path, warm: Warm) -> None:
        self.warm, self.work, self.log = warm, folder / "work", folder / "log"
        self.files = folder / "hub" / FILES
        self.files.mkdir(parents=True)
        self.address = folder / "hub"
        shutil.copytree(SCRIPT, self.work, ignore=shutil.ignore_patterns("__pycache__"))

    def source(self, **modules: str) -> None:
        """`name=text` becomes source/name.py."""
        (self.work / "source").mkdir(exist_ok=True)
        for name, text in modules.items():
            (self.work / "source" / f"{name}.py").write_text(text)

    def saved(self, program: str) -> None:
        """Run it in the folder of the version's files, with the source at hand."""
        code = self.warm.run(self.files, self.log, program=program, path=(self.work / "source",))
        assert code == 0, self.log.read_text()

    def export(
        self, file: str, *, spoil: Mapping[str, str] | None = None, tls: Path | None = None, **wanted: Any
    ) -> Ended:
        """`spoil`: path -> the SHA-256 that the hub is to have told of it. `tls`: certificates of a hub that
        serves HTTPS."""
        files = [
            {
                "path": path.relative_to(self.files).as_posix(),
                "size_bytes": path.stat().st_size,
                "sha256": hashlib.sha256(path.read_bytes()).hexdigest(),
            }
            for path in sorted(self.files.rglob("*"))
            if path.is_file()
        ]
        for item in files:
            item["sha256"] = (spoil or {}).get(str(item["path"]), item["sha256"])
        (self.work / "export.json").write_text(json.dumps({**WANTED, "file": file, "files": files, **wanted}))
        with ThreadingHTTPServer(("127.0.0.1", 0), partial(_Quiet, directory=str(self.address))) as server:
            if tls is not None:
                context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
                context.load_cert_chain(tls / "server.pem", tls / "server-key.pem")
                server.socket = context.wrap_socket(server.socket, server_side=True)
            threading.Thread(target=server.serve_forever, daemon=True).start()
            told = {"TRAINHUB_CA_FILE": str(tls / "ca.pem")} if tls else {}
            address = f"{'https' if tls else 'http'}://127.0.0.1:{server.server_port}"
            told |= {"TRAINHUB_URL": address, "TRAINHUB_TOKEN": "t"}
            code = self.warm.run(self.work, self.log, path=(self.work,), **told)
            server.shutdown()
        report = self.work / "outputs" / "export-report.json"
        return Ended(
            code, self.log.read_text(), json.loads(report.read_text()) if report.exists() else {}, self.work
        )
