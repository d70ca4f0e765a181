"""A whole hub under the attacks of findings S8, S9 (b) and S19. Bounded, and on the loopback only."""

from __future__ import annotations

import contextlib
import resource
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from tests.attacks.server.conftest import is_closed
from tests.hub import Hub, eventually

pytestmark = pytest.mark.slow
HALF_A_HEAD = b"GET / HTTP/1.1\r\nX-A: "


class HubOfAShell(Hub):
    """Started with the limits on open files that a usual shell or service has."""

    soft_limit, hard_limit = 1024, 1024

    def start(self) -> Hub:
        before = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (self.soft_limit, before[1]))
        try:
            return super().start()
        finally:
            resource.setrlimit(resource.RLIMIT_NOFILE, before)


@pytest.fixture(scope="module")
def attacked(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Hub]:
    running = HubOfAShell(tmp_path_factory.mktemp("attacked") / "data")
    try:
        yield running.start()
    finally:
        running.stop()


@contextlib.contextmanager
def half_open_heads(hub: Hub, count: int) -> Iterator[list[socket.socket]]:
    with contextlib.ExitStack() as stack:
        lines = []
        for _ in range(count):
            # Some are closed by the hub while we still send.
            with contextlib.suppress(OSError):
                line = stack.enter_context(socket.create_connection(("127.0.0.1", hub.port), 10))
                line.sendall(HALF_A_HEAD)
                lines.append(line)
        yield lines


def test_up_raises_the_limit_on_open_files(attacked: Hub) -> None:
    limits = Path(f"/proc/{attacked.pid('web')}/limits").read_text()
    soft, hard = next(line.split()[3:5] for line in limits.splitlines() if line.startswith("Max open files"))
    assert soft == hard


def test_eleven_hundred_half_open_heads_leave_everybody_else_served(attacked: Hub) -> None:
    with half_open_heads(attacked, 1100) as lines, attacked.client() as client:
        for _ in range(5):
            assert client.get("/api/v1/runs/").status_code == httpx.codes.OK
        assert is_closed(lines[0], 40)
    assert "unable to open database file" not in attacked.log("web")


def test_two_thousand_slow_connections_leave_everybody_else_served(attacked: Hub) -> None:
    """How much slower others become is measured by bench/slow_clients.py."""
    with half_open_heads(attacked, 2000), attacked.client() as client:
        for _ in range(10):
            assert client.get("/api/v1/runs/").status_code == httpx.codes.OK
    with attacked.client() as client:

        def node_reports() -> bool:
            return [node["status"] for node in client.get("/api/v1/nodes/").json()] == ["ready"]

        eventually(node_reports, 30, "this machine's node still reports")


def test_another_address_in_each_request_does_not_pass_the_limit_on_sign_ins(attacked: Hub) -> None:
    """Finding S9 (b): 12 of 12 wrong passwords for one name were evaluated after the limit had been
    reached."""
    answers = []
    for number in range(12):
        with httpx.Client(
            base_url=attacked.url, headers={"X-Forwarded-For": f"203.0.113.{number}"}, timeout=30
        ) as client:
            client.get("/sign-in/")
            token = client.cookies[attacked.cookie("csrftoken")]
            form = {"username": "somebody", "password": f"wrong-{number}", "csrfmiddlewaretoken": token}
            answers.append(client.post("/sign-in/", data=form).text)
    assert answers[-1] != answers[0]
    assert "seconds" in answers[-1]


def test_a_request_for_a_long_path_writes_little_into_the_log(attacked: Hub) -> None:
    log = attacked.own_folder / "logs" / "web.log"
    before = log.stat().st_size
    for _ in range(20):
        httpx.get(f"{attacked.url}/{'a' * 50_000}")
    assert log.stat().st_size - before < 20 * 5_000


def test_programs_are_started_with_nothing_but_names_in_their_command_lines(attacked: Hub) -> None:
    """Of the review's table "What was tried and held": no secret stands in a command line."""
    secrets = [
        attacked.owner_token(),
        (attacked.own_folder / "secret-key").read_text().strip(),
        attacked.password,
    ]
    lines = [
        Path(f"/proc/{attacked.pid(name)}/cmdline").read_bytes()
        for name in ("valkey", "web", "worker", "agent")
    ]
    assert not [secret for secret in secrets for line in lines if secret and secret.encode() in line]


def test_no_log_holds_a_secret(attacked: Hub) -> None:
    """Of the review's table "What was tried and held"."""
    secrets = [
        attacked.owner_token(),
        (attacked.own_folder / "secret-key").read_text().strip(),
        attacked.password,
    ]
    logs = [path.read_text(errors="replace") for path in (attacked.own_folder / "logs").iterdir()]
    assert not [secret for secret in secrets for log in logs if secret and secret in log]


def test_a_web_server_that_is_started_by_hand_names_a_wrong_proxy() -> None:
    command = [sys.executable, "-m", "trainhub.serving"]
    done = subprocess.run(
        command, env={"TRUSTED_PROXIES": "*"}, capture_output=True, text=True, timeout=60, check=False
    )
    assert "TRUSTED_PROXIES=* must list the proxies' addresses" in done.stderr
