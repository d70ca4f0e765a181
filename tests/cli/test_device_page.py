"""`trainhub login`: the person allows it on the hub's page, and the program has its token."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.cli.command_line import PROJECT
from tests.hub import Hub
from trainhub_sdk.profiles import load_profiles

pytestmark = [pytest.mark.browser, pytest.mark.slow]


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    return {"HOME": str(tmp_path), "PATH": "/usr/bin:/bin"}


def start_login(hub: Hub, environment: dict[str, str]) -> tuple[subprocess.Popen[str], str]:
    """Returns the program, and the address that it shows."""
    argv = [sys.executable, "-m", "trainhub_cli", "login", hub.url, "--scope", "read"]
    program = subprocess.Popen(
        argv, cwd=PROJECT, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert program.stderr is not None
    lines = [program.stderr.readline() for _ in range(3)]
    match = re.search(r"(/device/\?code=(\S+))", lines[0])
    assert match is not None, lines
    assert match[2] in lines[1]
    return program, match[1]


def test_allowed_on_the_page(confirmed_page: Any, hub: Hub, environment: dict[str, str]) -> None:
    program, address = start_login(hub, environment)
    confirmed_page.goto(address)
    confirmed_page.get_by_role("button", name="Allow", exact=True).click()
    out, _ = program.communicate(timeout=60)
    assert program.returncode == 0
    assert out == f"Signed in to {hub.url} as admin in workspace default, scope read.\n"
    whoami = [sys.executable, "-m", "trainhub_cli", "whoami"]
    done = subprocess.run(whoami, cwd=PROJECT, env=environment, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[0] == "admin, owner in workspace default, scope read"
    token = load_profiles(Path(environment["HOME"], ".config/trainhub/config.ini"))["default"].token
    logout = [sys.executable, "-m", "trainhub_cli", "logout"]
    done = subprocess.run(logout, cwd=PROJECT, env=environment, capture_output=True, text=True, check=True)
    assert done.stdout == "Profile default is forgotten here, and its token is revoked.\n"
    with hub.client(token) as client:
        assert client.get("/api/v1/me/").status_code == 401


def test_refused_on_the_page(page: Any, hub: Hub, environment: dict[str, str]) -> None:
    """However long ago the password was typed."""
    program, address = start_login(hub, environment)
    page.goto(address)
    page.get_by_role("button", name="Refuse").click()
    _, errors = program.communicate(timeout=60)
    assert program.returncode == 2
    assert errors.endswith("The request was refused on the page.\n")
