"""The export script as a node runs it, with a hub that only gives files: its exit code, its log, its report."""

from __future__ import annotations

import hashlib
import json
import os
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

SCRIPT = PROJECT / "registry" / "exporting" / "script"
FILES = "api/v1/models/digits/versions/3/files"
WANTED: dict[str, Any] = {
    "model": "digits", "version": 3, "factory": "", "inputs": [{"name": "", "shape": [2, 4], "dtype": "float32"}], "example": "",
    "dynamic": {"": {"0": "batch"}}, "relative": 1e-4, "absolute": 1e-5, "opset": None, "script_folder": "",
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

    def __init__(self, folder: Path, python: str) -> None:
        self.python, self.work = python, folder / "work"
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
        env = {**os.environ, "PYTHONPATH": str(self.work / "source")}
        subprocess.run([self.python, "-W", "ignore", "-c", program], cwd=self.files, env=env, check=True, capture_output=True)

    def export(self, file: str, *, spoil: Mapping[str, str] | None = None, tls: Path | None = None, **wanted: Any) -> Ended:
        """`spoil`: path -> the SHA-256 that the hub is to have told of it. `tls`: certificates of a hub that serves HTTPS."""
        files = [
            {"path": path.relative_to(self.files).as_posix(), "size_bytes": path.stat().st_size,
             "sha256": hashlib.sha256(path.read_bytes()).hexdigest()}
            for path in sorted(self.files.rglob("*")) if path.is_file()
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
            env = {**os.environ, "TRAINHUB_URL": address, "TRAINHUB_TOKEN": "t", **told}
            command = [self.python, "export_onnx.py"]
            done = subprocess.run(command, cwd=self.work, env=env, capture_output=True, text=True, timeout=240, check=False)
            server.shutdown()
        report = self.work / "outputs" / "export-report.json"
        return Ended(
            done.returncode, done.stdout + done.stderr, json.loads(report.read_text()) if report.exists() else {}, self.work
        )
