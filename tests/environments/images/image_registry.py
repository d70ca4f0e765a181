"""Debian's docker-registry with a login, on the loopback address."""

from __future__ import annotations

import json
import shutil
import socket
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tests.environments.images.container_images import MadeImage, push
from tests.hub import eventually, free_port

USER, PASSWORD = "team", "open sesame"
LOGIN = f"{USER}:{PASSWORD}"
_HTPASSWD = f"{USER}:$2b$04$J6hJ4zNjC82u6Xj1zPe8J.CLGV3s9KtOoQ4Bgz6QaH2i/3L1wEhQ.\n"


class ImageRegistry:
    """`log`: what the registry has been asked. `data`: its files. `certificate` and `key`: for TLS. `more`:
    further parts of its configuration."""

    def __init__(
        self,
        folder: Path,
        *,
        certificate: Path | None = None,
        key: Path | None = None,
        more: Mapping[str, Any] | None = None,
    ) -> None:
        program = shutil.which("docker-registry")
        assert program, "docker-registry is missing: run .ci/system-packages"
        folder.mkdir(exist_ok=True)
        self.host = f"127.0.0.1:{free_port()}"
        self.url = f"http{'s' if certificate else ''}://{self.host}"
        self.log, self.data = folder / "registry.log", folder / "data"
        passwords, settings = folder / "htpasswd", folder / "config.json"
        passwords.write_text(_HTPASSWD)
        tls = {"tls": {"certificate": str(certificate), "key": str(key)}} if certificate else {}
        # JSON is YAML, too.
        settings.write_text(
            json.dumps(
                {
                    "version": 0.1,
                    "log": {"level": "info"},
                    "storage": {"filesystem": {"rootdirectory": str(self.data)}},
                    "http": {"addr": self.host, "secret": "of the tests", **tls},
                    "auth": {"htpasswd": {"realm": "team", "path": str(passwords)}},
                    **(more or {}),
                }
            )
        )
        with self.log.open("wb") as log:
            self._process = subprocess.Popen(
                [program, "serve", str(settings)], stdout=log, stderr=subprocess.STDOUT
            )
        eventually(self._answers, 20, "the registry answers")

    def push(self, repository: str, tag: str, image: MadeImage) -> str:
        """Pushes the image and returns its reference."""
        push(self.url, repository, tag, image, (USER, PASSWORD))
        return f"{self.host}/{repository}:{tag}"

    def stop(self) -> None:
        self._process.kill()
        self._process.wait()

    def _answers(self) -> bool:
        host, _, port = self.host.partition(":")
        with socket.socket() as probe:
            return probe.connect_ex((host, int(port))) == 0
