"""The units for systemd, checked by systemd itself."""

from __future__ import annotations

import subprocess
from io import StringIO
from pathlib import Path

import pytest
from django.core.management import call_command

from tests.hub import Hub, eventually
from trainhub.up import service_unit
from trainhub_node import systemd

# Of 100, in the measure of `systemd-analyze security`, where a unit without any limits has 96.
MAX_EXPOSURE = 20


def verify(folder: Path, name: str, text: str) -> Path:
    """The unit, which systemd finds nothing wrong with: neither in its lines nor in what it starts."""
    unit = folder / name
    unit.write_text(text)
    done = subprocess.run(
        ["systemd-analyze", "verify", "--man=no", unit], capture_output=True, text=True, check=False
    )
    ours = [line for line in done.stderr.splitlines() if str(unit) in line or name in line]
    assert (done.returncode, ours) == (0, [])
    return unit


@pytest.mark.parametrize("with_node", [False, True])
def test_the_unit_of_a_hub_is_correct(tmp_path: Path, with_node: bool) -> None:
    verify(tmp_path, service_unit.NAME, service_unit.hub_unit(with_node=with_node))


def test_a_wrong_unit_is_noticed(tmp_path: Path) -> None:
    with pytest.raises(AssertionError):
        verify(tmp_path, service_unit.NAME, service_unit.hub_unit(with_node=False).replace("=yes", "=maybe"))


def test_the_unit_of_a_node_is_correct(tmp_path: Path) -> None:
    verify(tmp_path, systemd.NAME, systemd.unit(tmp_path))


def test_a_hub_without_a_node_is_confined(tmp_path: Path) -> None:
    unit = verify(tmp_path, service_unit.NAME, service_unit.hub_unit(with_node=False))
    command = ["systemd-analyze", "security", "--offline=true", f"--threshold={MAX_EXPOSURE}"]
    done = subprocess.run([*command, str(unit)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout


def test_what_runs_would_inherit_is_not_confined() -> None:
    lines = service_unit.hub_unit(with_node=True).splitlines()
    assert "KillMode=process" in lines
    assert not [
        line for line in lines if line.startswith(("NoNewPrivileges", "Protect", "Private", "Restrict"))
    ]


def test_the_command_prints_the_unit_alone_and_says_what_to_do() -> None:
    out, errors = StringIO(), StringIO()
    call_command("unit", stdout=out, stderr=errors)
    assert out.getvalue() == service_unit.hub_unit(with_node=False)
    assert f"/etc/systemd/system/{service_unit.NAME}" in errors.getvalue()


@pytest.mark.slow
def test_a_machine_that_takes_no_runs_has_no_agent(own_hub: Hub) -> None:
    own_hub.settings["LOCAL_NODE"] = "0"
    own_hub.is_new = True
    own_hub.start()
    assert "This machine takes no runs" in own_hub.said()
    eventually(own_hub.answers)
    assert own_hub.pid("agent") == 0
    with own_hub.client() as client:
        assert client.get("/api/v1/nodes/").raise_for_status().json() == []
