"""Requirements of people make the hub read package indexes: no code of a package runs there, and nobody
reaches through the hub what only it can reach."""

from __future__ import annotations

import io
import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from environments import changes, tasks
from environments.models import EnvironmentVersion
from tests.environments.package_index import PackageIndex
from tests.people import make_contributor, principal_of

pytestmark = pytest.mark.usefixtures("db", "valkey")


@pytest.fixture
def index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[PackageIndex]:
    (tmp_path / "index").mkdir()
    with PackageIndex(tmp_path / "index").serving() as served:
        monkeypatch.setenv("PIP_CONFIG_FILE", "/dev/null")
        monkeypatch.setenv("PIP_INDEX_URL", served.url)
        yield served


def failure(requirements: str) -> str:
    version = changes.create_version(principal_of(make_contributor()), "mine", "pip", requirements, "3.11")
    tasks.resolve_environment(version.pk)
    row = EnvironmentVersion.objects.get()
    assert row.state == "failed"
    return row.failure


def test_the_code_of_a_source_distribution_never_runs(index: PackageIndex, tmp_path: Path) -> None:
    trace = tmp_path / "ran"
    files = {
        "evil-1.0/setup.py": f"open({str(trace)!r}, 'w')\nfrom setuptools import setup\nsetup()\n",
        "evil-1.0/PKG-INFO": "Metadata-Version: 2.1\nName: evil\nVersion: 1.0\nDynamic: Requires-Dist\n",
    }
    with tarfile.open(index.folder / "evil-1.0.tar.gz", "w:gz") as archive:
        for name, text in files.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(text)
            archive.addfile(entry, io.BytesIO(text.encode()))
    assert "has no wheel" in failure("evil")
    assert not trace.exists()


@pytest.mark.parametrize(
    "host", ["169.254.169.254", "[::ffff:169.254.169.254]", "[fd00:ec2::254]", "224.0.0.1"]
)
def test_addresses_of_credentials_are_not_asked(host: str) -> None:
    assert "at an address that the hub does not connect to" in failure(f"-i http://{host}/simple\nx")


def test_the_hubs_own_ports_and_machine_are_not_asked(index: PackageIndex, settings: Any) -> None:
    settings.IS_ON_LOOPBACK_ONLY = False
    assert "does not connect to" in failure(f"--extra-index-url {index.url}\nx")
    assert index.requests == []


def test_a_password_of_the_hubs_own_index_is_in_no_message_or_lock(
    index: PackageIndex, monkeypatch: pytest.MonkeyPatch
) -> None:
    address = index.url.replace("http://", "http://user:pw-of-the-index@")
    monkeypatch.setenv("PIP_INDEX_URL", address.replace("/simple", "/nothing"))
    assert "pw-of-the-index" not in failure("tinylib")
    index.add("tinylib")
    monkeypatch.setenv("PIP_INDEX_URL", address)
    version = changes.create_version(principal_of(make_contributor()), "other", "pip", "tinylib", "3.11")
    tasks.resolve_environment(version.pk)
    version.refresh_from_db()
    assert version.is_locked, version.failure
    assert "pw-of-the-index" not in version.lock
