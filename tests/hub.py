"""A real hub for tests: what `manage.py up` starts, on a free port and a data folder of its own."""

from __future__ import annotations

import os
import re
import signal
import socket
import ssl
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import httpx

from tests import migrated
from tests.caching import CACHE
from tests.harness.coverage import recorder
from trainhub.up.children import end_with_parent
from trainhub.web import cookies

PROJECT = Path(__file__).resolve().parent.parent
OURS = re.compile(
    r"(TRAINHUB_|DJANGO_|DATA_DIR|NODE_|SECRET_KEY|DATABASE|REDIS|BROKER|RABBITMQ|BIND|OPEN$|TLS|PUBLIC_URL"
    r"|API_URL|HSTS|ALLOWED|RUN_AS|HUB_AS|TRUSTED|OIDC_|SIGN_IN_|REMOTE_USER_|PASSWORD_SIGN_IN|OPERATORS_NEED"
    r"|EMAIL_URL|SHIP_LOGS_)"
)
FINAL = ("Completed", "Failed", "Canceled")
PASSWORD = re.compile(r"admin with the password (\S+)")
# Between two questions of `eventually`; so much later than at once it may notice an answer.
SHORTEST_PAUSE_S, LONGEST_PAUSE_S = 0.05, 2.0
T = TypeVar("T")


def eventually(condition: Callable[[], T | None], seconds: float = 20, what: str = "") -> T:
    """The first true answer of `condition`; fails after `seconds`.

    It asks less often the longer it has waited: each question costs a hub some of the CPU time that the work
    waited for needs, too."""
    start = time.monotonic()
    while True:
        answer = condition()
        if answer:
            return answer
        waited = time.monotonic() - start
        assert waited < seconds, f"not within {seconds} s: {what or condition}"
        time.sleep(min(SHORTEST_PAUSE_S + waited / 10, LONGEST_PAUSE_S))


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


class Hub:
    """`start`, ask with `client`, `kill` a part by name (valkey, web, worker, agent), `stop`.

    `is_new`: it makes its database by itself, as on a machine that never had a TrainHub. `project`: the
    folder whose code it runs, by its `script`. `is_recorded`: its processes record which lines they execute,
    if the test run does.
    """

    arguments: tuple[str, ...] = ("up",)
    python = sys.executable
    script = "manage.py"
    # What each of its commands is run by, such as a program that shows it other accounts.
    prefix: tuple[str, ...] = ()
    is_new = False
    is_recorded = False
    project = PROJECT

    def __init__(self, data_dir: Path, **settings: str) -> None:
        self.data_dir = data_dir
        self.port = free_port()
        self.url = f"{'https' if 'OPEN' in settings else 'http'}://127.0.0.1:{self.port}"
        self.browser_url = self.url if "OPEN" in settings else f"http://trainhub.localhost:{self.port}"
        self.settings = {
            **settings,
            **({"BROKER_BIND": f"127.0.0.1:{free_port()}"} if "OPEN" in settings else {}),
        }
        self.password = ""
        self.token = ""
        self.process: subprocess.Popen[str] | None = None
        self.console = data_dir.parent / f"{data_dir.name}.console"

    @property
    def env(self) -> dict[str, str]:
        """Of `up` and of every other manage.py command for this hub."""
        kept = {name: value for name, value in os.environ.items() if not OURS.match(name)}
        own = {
            "DATA_DIR": str(self.data_dir),
            "BIND": f"127.0.0.1:{self.port}",
            "TRAINHUB_NODE_CACHE": str(CACHE / "node"),
            # Its trial at each start would cost the tests more than it tells them.
            "TRAINHUB_NODE_CONTAINERS": "off",
        }
        if "RUN_AS" in self.settings:
            own["HUB_AS"] = "daemon"  # an account that every Linux has
        elif os.geteuid() == 0 and self.project == PROJECT:
            own["RUN_AS"] = "root"  # pytest's folders are closed to other accounts
        recorded = recorder.environment() if self.is_recorded else {}
        return {**kept, **own, **self.settings, **recorded}

    def cookie(self, name: str) -> str:
        """The name under which a browser keeps this hub's cookie `name` (sessionid, csrftoken)."""
        return cookies.name(name, self.browser_url)

    def start(self) -> Hub:
        if not self.is_new and "DATABASE_URL" not in self.settings and self.own_folder == self.data_dir:
            migrated.put_into(self.data_dir)
        with self.console.open("w") as console:
            self.process = subprocess.Popen(
                [*self.prefix, self.python, self.script, *self.arguments],
                cwd=self.project,
                env=self.env,
                stdout=console,
                stderr=subprocess.STDOUT,
                text=True,
                start_new_session=True,
                preexec_fn=end_with_parent(),  # noqa: PLW1509 - only prctl
            )
        eventually(
            lambda: "Ctrl-C stops" in self.said() or self._gave_up(),
            # A demo that takes 14 s alone takes 100 s beside browsers and other hubs.
            300,
            f"{self.console} says that it is ready",
        )
        self.password = self.password or next(iter(PASSWORD.findall(self.said())), "")
        return self

    @property
    def own_folder(self) -> Path:
        """What belongs to the hub itself: with RUN_AS a part of the data folder, where root keeps the
        rest."""
        separate = self.data_dir / "hub"
        return separate if separate.exists() else self.data_dir

    def cancel_all(self) -> None:
        """End every run, which would otherwise outlive the hub and the tests."""
        with self.client() as client:

            def active() -> list[str]:
                found = client.get("/api/v1/runs/").raise_for_status().json()["results"]
                return [run["id"] for run in found if run["kind"] == "job" and run["state"] not in FINAL]

            for run in active():
                client.post(f"/api/v1/runs/{run}/cancel/")
            eventually(lambda: not active(), 30)

    def said(self) -> str:
        return self.console.read_text()

    def stop(self, number: signal.Signals = signal.SIGINT) -> int:
        """Ask `up` to end and wait for it; its exit code."""
        if self.process is None:
            return 0
        if self.process.poll() is None:
            self.process.send_signal(number)
        return self.process.wait(60)

    def manage(self, *arguments: str, check: bool = True) -> subprocess.CompletedProcess[str]:
        command = [*self.prefix, self.python, self.script, *arguments]
        done = subprocess.run(
            command, cwd=self.project, env=self.env, capture_output=True, text=True, timeout=300, check=False
        )
        assert not check or done.returncode == 0, done.stderr
        return done

    def pid(self, name: str) -> int:
        """Of a part that runs; 0 while none does."""
        file = (self.data_dir if name == "agent" else self.own_folder) / "run" / f"{name}.pid"
        return int(file.read_text()) if file.exists() else 0

    def kill(self, name: str, *, wait: bool = True) -> None:
        """kill -9 of one part; waits until its successor runs (and, for the web server, answers)."""
        before = self.pid(name)
        assert before > 1, f"{name} does not run"
        os.kill(before, signal.SIGKILL)
        if wait:
            eventually(lambda: self.pid(name) not in (0, before), what=f"{name} runs again")
            eventually(self.answers, seconds=60, what="the hub answers again")

    def answers(self) -> bool:
        try:
            return (
                httpx.get(f"{self.url}/healthz", timeout=2, verify=self.trusted()).status_code
                == httpx.codes.OK
            )
        except httpx.TransportError:
            return False

    def client(self, token: str | None = None, **options: Any) -> httpx.Client:
        """With the owner's token unless another is given; '' for none."""
        bearer = self.owner_token() if token is None else token
        headers = {"Authorization": f"Bearer {bearer}"} if bearer else {}
        return httpx.Client(base_url=self.url, headers=headers, timeout=30, verify=self.trusted(), **options)

    def trusted(self) -> ssl.SSLContext | bool:
        """An open hub is believed by its own authority alone."""
        return (
            ssl.create_default_context(cafile=self.own_folder / "tls" / "ca.pem")
            if "OPEN" in self.settings
            else True
        )

    def owner_token(self) -> str:
        if not self.token:
            self.token = self.manage("token", "create", "admin").stdout.strip().splitlines()[-1].split()[-1]
        return self.token

    def log(self, name: str) -> str:
        path = (self.data_dir if name == "agent" else self.own_folder) / "logs" / f"{name}.log"
        return path.read_text(errors="replace") if path.exists() else ""

    def _gave_up(self) -> bool:
        assert self.process is not None
        assert self.process.poll() is None, self.said()
        return False
