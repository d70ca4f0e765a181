"""`pip install trainhub-hub && trainhub-hub up`, in a virtual environment of its own."""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

import trainhub_azureml
import trainhub_node
import trainhub_sdk
from tests import runs
from tests.hub import PROJECT, eventually
from tests.releases import installed
from tests.releases.installed import InstalledHub
from trainhub import __version__
from trainhub.documentation.library import documents

NODE_PROGRAM = """
import json
from clusters.allocations import node_program
print(json.dumps(node_program.pack_problem()))
"""

DOCUMENTS = """
from trainhub.documentation.library import documents
print(len(documents()))
"""


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return installed.build(tmp_path_factory.mktemp("wheel"), "hub")


@pytest.fixture(scope="module")
def programs(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return installed.install(wheel, tmp_path_factory.mktemp("installed") / "venv")


@pytest.fixture(scope="module")
def installed_hub(programs: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[InstalledHub]:
    hub = InstalledHub(programs, tmp_path_factory.mktemp("elsewhere"))
    try:
        yield hub.start()  # type: ignore[misc]
        hub.cancel_all()
    finally:
        hub.stop()


def default_folder(programs: Path, **variables: str) -> str:
    environ = {name: value for name, value in os.environ.items() if name not in ("DATA_DIR", "XDG_DATA_HOME")}
    code = "import trainhub_hub.__main__ as m, sys; sys.path.insert(0, str(m.APP))\n"
    code += variables.pop("as_account", "")
    code += "from trainhub import installation; print(installation.DATA_DIR)"
    command = [str(programs / "python"), "-c", code]
    done = subprocess.run(
        command, env={**environ, **variables}, capture_output=True, text=True, check=True, cwd="/"
    )
    return done.stdout.strip()


@pytest.mark.slow
class TestInstalled:
    def test_a_first_run_completes(self, installed_hub: InstalledHub) -> None:
        said = installed_hub.said()
        assert "`manage.py` and `make up` of texts are `trainhub-hub`" in said
        run = runs.submit(installed_hub, "print('from an installed hub')", environment={"name": "system"})
        assert runs.wait_for(installed_hub, run, "Completed")
        assert runs.log(installed_hub, run) == b"from an installed hub\n"

    def test_it_serves_pages_documents_and_the_command_line(self, installed_hub: InstalledHub) -> None:
        with installed_hub.client() as client:
            page = client.get("/sdk/").raise_for_status().text
            assert f"trainhub-{__version__}-py3-none-any.whl" in page
            assert "rich-" in page
            assert len(client.get("/api/v1/examples/").raise_for_status().json()) > 3
            assert client.get("/api/v1/environments/").raise_for_status().json()
            assert client.get("/static/js/app.js").status_code == 200
        assert installed_hub.evaluate(DOCUMENTS) == len(documents())

    def test_it_packs_the_program_of_nodes_from_its_own_environment(
        self, installed_hub: InstalledHub
    ) -> None:
        assert installed_hub.evaluate(NODE_PROGRAM) == ""

    def test_it_backs_up_and_checks(self, installed_hub: InstalledHub, tmp_path: Path) -> None:
        installed_hub.manage("backup", str(tmp_path / "backup"))
        assert "is whole" in installed_hub.manage("backup", "--verify", str(tmp_path / "backup")).stdout
        installed_hub.manage("check")

    def test_nothing_is_written_into_the_package(self, installed_hub: InstalledHub, programs: Path) -> None:
        eventually(installed_hub.answers)
        (app,) = programs.parent.glob("lib/python*/site-packages/trainhub_hub/app")
        assert not (app / "data").exists()
        assert not list(app.glob("**/*.part"))

    def test_its_data_lies_outside_of_the_package(self, programs: Path, tmp_path: Path) -> None:
        account = "import os; os.geteuid = lambda: 1000\n"
        own = default_folder(programs, as_account=account, XDG_DATA_HOME=str(tmp_path))
        assert own == str(tmp_path / "trainhub")
        at_home = default_folder(programs, as_account=account, HOME=str(tmp_path))
        assert at_home == str(tmp_path / ".local/share/trainhub")
        root = "import os; os.geteuid = lambda: 0\n"
        assert default_folder(programs, as_account=root) == "/var/lib/trainhub"


@pytest.mark.slow
@pytest.mark.parametrize("package", ["hub", "node", "sdk"])
def test_two_builds_have_the_same_bytes(package: str, tmp_path: Path) -> None:
    umask = os.umask(0o077)
    try:
        first = installed.build(tmp_path / "one", package)
    finally:
        os.umask(umask)
    assert first.read_bytes() == installed.build(tmp_path / "two", package).read_bytes()


def test_the_wheel_has_every_file_of_the_project_that_a_hub_needs(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = {name.removeprefix("trainhub_hub/app/") for name in archive.namelist()}
    tracked = subprocess.run(["git", "ls-files"], cwd=PROJECT, capture_output=True, text=True, check=True)
    left_out = (
        "tests/",
        "bench/",
        ".",
        "Makefile",
        "pyproject.toml",
        "requirements-dev",
        "requirements.lock",
    )
    missing = [
        line for line in tracked.stdout.splitlines() if not line.startswith(left_out) and line not in names
    ]
    assert missing == []


def test_a_release_is_signed_and_its_digests_are_right(tmp_path: Path) -> None:
    key, allowed, to = tmp_path / "key", tmp_path / "allowed_signers", tmp_path / "dist"
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", key], check=True)
    command = [sys.executable, f"{PROJECT}/packaging/make_release.py", str(to), "--key", str(key)]
    subprocess.run(command, check=True, capture_output=True, timeout=300)
    allowed.write_text(f"releases@trainhub {key.with_suffix('.pub').read_text()}")
    verify = ["ssh-keygen", "-Y", "verify", "-f", str(allowed), "-I", "releases@trainhub"]
    verify += ["-n", "trainhub-release", "-s", f"{to}/SHA256SUMS.sig"]
    sums = (to / "SHA256SUMS").read_bytes()
    assert subprocess.run(verify, input=sums, check=False, capture_output=True).returncode == 0
    assert subprocess.run(verify, input=sums + b" ", check=False, capture_output=True).returncode != 0
    subprocess.run(
        ["sha256sum", "--check", "--strict", "SHA256SUMS"], cwd=to, check=True, capture_output=True
    )
    assert {path.name for path in to.iterdir()} >= {
        "SHA256SUMS",
        f"trainhub_hub-{__version__}-py3-none-any.whl",
    }


def test_all_packages_have_one_version() -> None:
    assert {trainhub_node.__version__, trainhub_sdk.__version__, trainhub_azureml.__version__} == {
        __version__
    }
