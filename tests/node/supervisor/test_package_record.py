"""What the supervisor finds installed, without running any of it."""

from __future__ import annotations

import json
import os
from pathlib import Path

from tests.node.builders import script
from tests.node.hub import FakeHub
from trainhub_launch.log_names import PACKAGES_FILE
from trainhub_node.agent import Agent
from trainhub_node.supervisor import site_packages


def install(folder: Path, entry: str, metadata: str = "") -> None:
    (folder / entry).mkdir(parents=True)
    if metadata:
        (folder / entry / "METADATA").write_text(metadata)


def read(python: Path, **environment: str) -> tuple[object, list[tuple[str, ...]]]:
    record = site_packages.read_packages(str(python), {"HOME": "/nowhere", **environment})
    packages = record["packages"]
    assert isinstance(packages, list)
    return record["python"], [tuple(item) for item in packages]


def test_reads_a_virtual_environment_by_its_metadata(tmp_path: Path) -> None:
    (tmp_path / "pyvenv.cfg").write_text("home = /usr/bin\nversion = 3.11.9\n")
    site = tmp_path / "lib/python3.11/site-packages"
    install(
        site, "tiny_lib-1.0.dist-info", "Metadata-Version: 2.1\nName: Tiny.Lib\nVersion: 1.0\n\nName: no\n"
    )
    install(site, "bare-2.0.dist-info")
    # What an environment of anybody may have: a link to another file, and a pipe.
    install(site, "linked-3.0.dist-info")
    (site / "linked-3.0.dist-info" / "METADATA").symlink_to("/etc/passwd")
    install(site, "piped-4.0.dist-info")
    os.mkfifo(site / "piped-4.0.dist-info" / "METADATA")
    (site / "hook.pth").write_text("import sys; raise SystemExit('code of a package was run')\n")
    # Of the person's own, which a virtual environment does not see.
    install(tmp_path / "user/lib/python3.11/site-packages", "mine-1.0.dist-info")
    first = tmp_path / "first"
    install(first, "bare-9.dist-info")

    python, packages = read(
        tmp_path / "bin/python", PYTHONPATH=f"{first}:relative", PYTHONUSERBASE=f"{tmp_path}/user"
    )

    assert python == "3.11.9"
    assert packages == [
        ("pip", "bare", "9", ""),
        ("pip", "linked", "3.0", ""),
        ("pip", "piped", "4.0", ""),
        ("pip", "Tiny.Lib", "1.0", ""),
    ]


def test_names_a_package_of_conda_once(tmp_path: Path) -> None:
    records = tmp_path / "conda-meta"
    records.mkdir()
    (records / "history").touch()
    (records / "python-3.12.4-h1_0_cpython.json").write_text("{}")
    files = ["lib/python3.12/site-packages/torch-2.5.0.dist-info/METADATA"]
    (records / "pytorch-gpu-2.5.0-py312_0.json").write_text(json.dumps({"files": files}))
    site = tmp_path / "lib/python3.12/site-packages"
    install(site, "torch-2.5.0.dist-info", "Name: torch\nVersion: 2.5.0\n")
    install(site, "extra-1.0.dist-info", "Name: extra\nVersion: 1.0\n")

    python, packages = read(tmp_path / "bin/python")

    assert python == "3.12.4"
    assert packages == [
        ("conda", "python", "3.12.4", "h1_0_cpython"),
        ("conda", "pytorch-gpu", "2.5.0", "py312_0"),
        ("pip", "extra", "1.0", ""),
    ]


def test_a_run_sends_what_its_interpreter_has(hub: FakeHub, agent: Agent) -> None:
    code = (
        "import importlib.metadata as m, json; "
        "print(json.dumps(sorted({(d.metadata['Name'] or '').lower() for d in m.distributions()})))"
    )
    key = hub.give(script(hub, code))

    assert hub.wait_done(key).members[0].exit_code == 0

    packages = json.loads(hub.log(key, PACKAGES_FILE))["packages"]
    assert sorted({name.lower() for _, name, _, _ in packages}) == json.loads(hub.log(key))
