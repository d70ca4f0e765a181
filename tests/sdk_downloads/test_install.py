"""A person installs the command line on a machine of their own, with the lines of the page and without a
package index."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from tests.hub import PROJECT, Hub
from tests.sdk_downloads.machines import Machine, copied_lines, foreign_index
from trainhub import __version__

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def open_hub(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Hub]:
    running = Hub(tmp_path_factory.mktemp("open") / "data", OPEN="1")
    try:
        yield running.start()
    finally:
        running.stop()


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


def page_of(hub: Hub) -> httpx.Response:
    with hub.client("") as anybody:
        return anybody.get("/sdk/")


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> zipfile.ZipFile:
    builder = PROJECT / "packaging" / "build_wheel.py"
    result = subprocess.run(
        [sys.executable, builder, tmp_path_factory.mktemp("wheel"), "--package", "sdk"],
        capture_output=True,
        text=True,
        check=True,
        timeout=120,
    )
    return zipfile.ZipFile(Path(result.stdout.strip()))


def test_the_wheel_holds_all_packages_whole(wheel: zipfile.ZipFile) -> None:
    modules = {name for name in wheel.namelist() if name.endswith(".py")}
    assert modules == {
        str(path.relative_to(PROJECT))
        for name in ("trainhub_sdk", "trainhub_cli", "trainhub_azureml")
        for path in (PROJECT / name).rglob("*.py")
    }
    metadata = wheel.read(f"trainhub-{__version__}.dist-info/METADATA").decode()
    assert "Requires-Python: >=3.8" in metadata
    assert "License-Expression: Apache-2.0" in metadata


class TestAzureNames:
    """A path file of the wheel appends the names of the Azure ML SDK v1 to the path of Python."""

    @pytest.fixture
    def site(self, wheel: zipfile.ZipFile, tmp_path: Path) -> Path:
        """Where packages are installed, with the wheel."""
        wheel.extractall(tmp_path / "site")
        return tmp_path / "site"

    def place_of(self, site: Path, module: str) -> str:
        """Where a plain Python finds the module, below `site`."""
        code = f"import site; site.addsitedir({str(site)!r}); import {module}; print({module}.__file__)"
        argv = [sys.executable, "-I", "-S", "-c", code]
        done = subprocess.run(argv, capture_output=True, text=True, check=True, timeout=60)
        return str(Path(done.stdout.strip()).relative_to(site))

    def test_are_found_where_nothing_else_has_them(self, site: Path) -> None:
        assert (site / "trainhub_azureml.pth").read_text() == "trainhub_azureml/names\n"
        assert self.place_of(site, "azureml.core") == "trainhub_azureml/names/azureml/core/__init__.py"

    def test_never_hide_a_real_package(self, site: Path) -> None:
        extend = "__path__ = __import__('pkgutil').extend_path(__path__, __name__)\n"
        for package, text in (("azureml", extend), ("azureml/core", ""), ("azureml/mlflow", "")):
            (site / package).mkdir()
            (site / package / "__init__.py").write_text(text)
        assert self.place_of(site, "azureml.core") == "azureml/core/__init__.py"
        assert self.place_of(site, "azureml.mlflow") == "azureml/mlflow/__init__.py"
        # A plugin alone, such as azureml-mlflow, goes on working beside them.
        shutil.rmtree(site / "azureml" / "core")
        assert self.place_of(site, "azureml.mlflow") == "azureml/mlflow/__init__.py"
        assert self.place_of(site, "azureml.core") == "trainhub_azureml/names/azureml/core/__init__.py"


class TestHubOnThisMachine:
    def test_installs_from_its_page_alone(self, hub: Hub, machine: Machine) -> None:
        install = copied_lines(page_of(hub).text)[0]
        result = machine.shell(install)
        assert result.returncode == 0, result.stderr
        assert __version__ in machine.shell("trainhub --version").stdout
        plain = machine.shell("python -c 'from azureml.core import Workspace; print(Workspace)'")
        assert "trainhub_azureml" in plain.stdout, plain.stderr

    def test_a_higher_version_at_an_index_does_not_count(
        self, hub: Hub, machine: Machine, tmp_path: Path
    ) -> None:
        line = copied_lines(page_of(hub).text)[0].replace(
            "pip install", "pip -q install --dry-run --report -"
        )
        with foreign_index(tmp_path / "index") as index:
            for variable in ("PIP_INDEX_URL", "PIP_EXTRA_INDEX_URL"):
                assert _version(machine, line, variable, index) == __version__
            # Without the option that index does count, so it works.
            assert _version(machine, line.replace(" --no-index", ""), "PIP_INDEX_URL", index) == "99.0"

    def test_the_page_needs_no_sign_in_and_says_nothing_of_people(self, hub: Hub) -> None:
        page = page_of(hub)
        assert (page.status_code, page.headers.get("set-cookie")) == (200, None)
        for text in ("admin", hub.password, str(hub.data_dir), str(PROJECT), "/settings/", "/runs/"):
            assert text not in page.text

    def test_has_no_authority(self, hub: Hub) -> None:
        with hub.client("") as anybody:
            assert anybody.get("/sdk/ca.pem").status_code == 404


class TestOpenHub:
    def test_installs_once_its_authority_is_verified(self, open_hub: Hub, machine: Machine) -> None:
        fetch, install, *_ = copied_lines(page_of(open_hub).text)
        assert machine.shell(install).returncode != 0
        result = machine.shell(f"{fetch}\n{install}")
        assert result.returncode == 0, result.stderr
        assert __version__ in machine.shell("trainhub --version").stdout

    @pytest.mark.long
    def test_installs_with_a_pip_that_fails_at_certificates_for_addresses(
        self, open_hub: Hub, machine: Machine
    ) -> None:
        machine.use_pip("25.3")
        fetch, install, *_ = copied_lines(page_of(open_hub).text)
        assert machine.shell(fetch).returncode == 0
        plain = machine.shell(install.partition(" || ")[2])
        assert "check_hostname requires server_hostname" in plain.stderr
        assert machine.shell(install).returncode == 0
        assert __version__ in machine.shell("trainhub --version").stdout

    def test_another_fingerprint_stops_all_lines(self, open_hub: Hub, machine: Machine) -> None:
        fetch, install, *_ = copied_lines(page_of(open_hub).text)
        wrong = re.sub(r"[0-9a-f]{64}", "0" * 64, fetch)
        refused = machine.shell(wrong)
        assert (refused.returncode, "not the authority" in refused.stderr) == (1, True)
        result = machine.shell(f"{wrong}\n{install}")
        assert result.returncode != 0
        assert not (machine.folder / "trainhub-ca.pem").exists()
        assert machine.shell("trainhub --version").returncode == 127


def _version(machine: Machine, line: str, variable: str, index: str) -> str:
    """The version of trainhub that pip would install."""
    result = machine.shell(line, **{variable: index})
    assert result.returncode == 0, result.stderr
    versions = {
        item["metadata"]["name"]: item["metadata"]["version"] for item in json.loads(result.stdout)["install"]
    }
    return str(versions["trainhub"])
