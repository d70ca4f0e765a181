"""Nodes that install locked environments from the hub's index: a real agent, a real uv, and a hub that serves
the files of one order to whoever has its ticket."""

from __future__ import annotations

import base64
import hashlib
import json
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from tests.environments.package_index import PackageIndex
from tests.node.builders import script, settings
from tests.node.hub import FakeHub
from tests.node.test_run_as import nobody_account
from trainhub_launch.log_names import ENVIRONMENT_LOG
from trainhub_launch.order import EnvironmentSpec, NodeOrder
from trainhub_node.agent import Agent
from trainhub_node.environments import builder_account, interpreter
from trainhub_node.environments.hub_index import without_indexes
from trainhub_node.environments.uv_install import uv_error
from trainhub_node.launch import cache, uv_support

USE = "import tinylib\nprint(tinylib.VERSION, tinylib.__cached__)\n"
TICKET = "thk_ticket-of-the-tests"


class OrderIndex(PackageIndex):
    """The hub's index of one order. `failures`: files that it cannot get, with the reason."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.failures: dict[str, str] = {}

    @property
    def order_url(self) -> str:
        return self.url.removesuffix("/simple")

    def take(self, path: Path) -> None:
        """Serves a copy of the file as the hub does, below its hash, and wheels also as an index."""
        data = path.read_bytes()
        (self.folder / path.name).write_bytes(data)
        copy = self.folder / hashlib.sha256(data).hexdigest() / path.name
        copy.parent.mkdir()
        copy.write_bytes(data)

    def answer_post(self) -> bytes:
        failures = [{"file": name, "reason": reason} for name, reason in self.failures.items()]
        return json.dumps({"files": 1, "ready": 1, "bytes": 0, "failures": failures}).encode()


@pytest.fixture
def index(tmp_path: Path) -> Iterator[OrderIndex]:
    folder = tmp_path / "index"
    folder.mkdir()
    index = OrderIndex(folder)
    index.login = f"trainhub:{TICKET}"
    with index.serving():
        yield index


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """A folder that other accounts can enter, as pytest's own cannot be."""
    folder = Path(tempfile.mkdtemp(prefix="trainhub-node-"))
    folder.chmod(0o711)
    try:
        yield folder
    finally:
        shutil.rmtree(folder)


@pytest.fixture(autouse=True)
def no_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in os.environ if name.startswith("PIP_")]:
        monkeypatch.delenv(name)


def locked(index: OrderIndex, *names: str, sha256: str = "") -> EnvironmentSpec:
    """An environment whose lock names an index that is gone."""
    hashes = {name: sha256 or index.sha256(f"{name}-1.0-py3-none-any.whl") for name in names}
    lines = (f"{name}==1.0 \\\n    --hash=sha256:{value}\n    # via -r x\n" for name, value in hashes.items())
    lock = "--index-url http://127.0.0.1:9/simple\n" + "".join(lines)
    return EnvironmentSpec("tiny", "1", "venv", lock=lock)


def ordered(hub: FakeHub, index: OrderIndex, spec: EnvironmentSpec, code: str = USE) -> NodeOrder:
    order = script(hub, code, environment=spec)
    return replace(order, package_index=index.order_url, package_ticket=TICKET)


def wait_compiled(hub: FakeHub, environment: Path) -> None:
    """Until the agent has compiled the modules of the environment."""
    hub.wait(lambda: not interpreter.is_uncompiled(str(environment)), 120)


@pytest.mark.slow
class TestInstall:
    def test_takes_all_from_the_hub_and_compiles_it(
        self, hub: FakeHub, agent: Agent, index: OrderIndex
    ) -> None:
        index.add("tinylib")
        spec = locked(index, "tinylib")
        key = hub.give(ordered(hub, index, spec))
        fact = hub.wait_done(key, 60)
        folder = agent.settings.environments / spec.digest
        log = hub.log(key, ENVIRONMENT_LOG)
        wait_compiled(hub, folder)
        cached = next(folder.glob("lib/python*/site-packages/__pycache__/tinylib.*.pyc"))
        assert hub.log(key) == f"1.0 {cached}\n".encode(), (fact, log)
        assert b"uv pip install" in log
        assert TICKET.encode() not in log
        password = base64.b64encode(f"trainhub:{TICKET}".encode()).decode()
        assert index.authorizations == {f"Basic {password}", f"Bearer {TICKET}"}
        assert not list(folder.parent.glob("*.scratch"))

    def test_names_the_file_that_the_hub_cannot_get(
        self, hub: FakeHub, agent: Agent, index: OrderIndex
    ) -> None:
        index.add("tinylib")
        spec = locked(index, "tinylib")
        index.failures = {"tinylib-1.0-py3-none-any.whl": "pypi.org answers 404 Not Found"}
        fact = hub.wait_done(hub.give(ordered(hub, index, spec)), 60)
        assert fact.error == (
            "The hub could not get tinylib-1.0-py3-none-any.whl (pypi.org answers 404 Not Found), and this "
            "node has not installed it from elsewhere."
        )
        assert not (agent.settings.environments / spec.digest).exists()

    def test_refuses_another_file(self, hub: FakeHub, agent: Agent, index: OrderIndex) -> None:
        index.add("tinylib")
        fact = hub.wait_done(hub.give(ordered(hub, index, locked(index, "tinylib", sha256="0" * 64))), 60)
        assert fact.error_kind == "environment"
        assert "could not be installed: " in fact.error
        assert "tinylib" in fact.error

    def test_asks_an_index_of_the_nodes_operator_first(
        self,
        hub: FakeHub,
        start_agent: Callable[..., Agent],
        index: OrderIndex,
        tmp_path: Path,
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        index.add("tinylib")
        (tmp_path / "mirror").mkdir()
        with PackageIndex(tmp_path / "mirror").serving() as mirror:
            (mirror.folder / "tinylib-1.0-py3-none-any.whl").write_bytes(
                (index.folder / "tinylib-1.0-py3-none-any.whl").read_bytes()
            )
            index.add("base")
            monkeypatch.setenv("PIP_INDEX_URL", mirror.url)
            start_agent()
            key = hub.give(ordered(hub, index, locked(index, "tinylib")))
            hub.wait_done(key, 60)
            assert hub.log(key).startswith(b"1.0 ")
            assert index.requests == []
            # What the mirror lacks comes from the hub.
            both = hub.give(ordered(hub, index, locked(index, "tinylib", "base")))
            hub.wait_done(both, 60)
            assert hub.log(both).startswith(b"1.0 ")
            assert any("base" in path for path in index.requests)

    def test_without_uv_pip_does_it(
        self, hub: FakeHub, agent: Agent, index: OrderIndex, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(uv_support, "_uv_path", str)
        index.add("tinylib")
        key = hub.give(ordered(hub, index, locked(index, "tinylib")))
        fact = hub.wait_done(key, 120)
        log = hub.log(key, ENVIRONMENT_LOG)
        assert hub.log(key).startswith(b"1.0 "), (fact, log)
        assert b"-m pip download" in log
        assert TICKET.encode() not in log


@pytest.mark.slow
@pytest.mark.skipif(os.geteuid() != 0, reason="only root has an account that installs")
class TestInstaller:
    def test_shares_files_by_hard_links_that_runs_cannot_change(
        self, hub: FakeHub, start_agent: Callable[..., Agent], index: OrderIndex, open_folder: Path
    ) -> None:
        """A second environment has the same files as the first, the compiled ones included; no account of
        runs can write to them, and none reaches the cache."""
        agent = start_agent(settings(hub, open_folder, run_as=nobody_account(), python="/usr/bin/python3"))
        index.add("tinylib")
        index.add("base")
        first, second = locked(index, "tinylib"), locked(index, "tinylib", "base")
        attack = (
            "import os, pathlib, tinylib\n"
            "for path in (tinylib.__file__, tinylib.__cached__):\n"
            "    for use in (lambda: open(path, 'a'), lambda: os.link(path, 'mine'),\n"
            "                lambda: os.unlink(path), lambda: os.chmod(path, 0o777),\n"
            "                lambda: open(path + 'x', 'w')):\n"
            "        try:\n            use()\n            print('could', path)\n"
            "        except OSError:\n            print('refused')\n"
            f"print(os.access({str(agent.settings.packages / str(builder_account.INSTALLER))!r}, os.R_OK))\n"
        )
        for spec in (first, second):
            key = hub.give(ordered(hub, index, spec, attack))
            fact = hub.wait_done(key, 60)
            wait_compiled(hub, agent.settings.environments / spec.digest)
            log = hub.log(key)
            assert b"could" not in log.replace(b"could not", b""), log
            assert log.endswith(b"False\n"), (fact, log, hub.log(key, ENVIRONMENT_LOG))
        files = [
            next((agent.settings.environments / spec.digest).glob(f"lib/python*/site-packages/{name}"))
            for spec in (first, second)
            for name in ("tinylib.py", "__pycache__/tinylib.*.pyc")
        ]
        assert files[0].stat().st_ino == files[2].stat().st_ino
        assert files[1].stat().st_ino == files[3].stat().st_ino
        assert {file.stat().st_uid for file in files} == {builder_account.INSTALLER}
        folder = agent.settings.environments / first.digest
        assert all(path.stat().st_uid == 0 for path in folder.rglob("*") if path.is_dir())
        assert not [
            path for path in folder.rglob("*") if not path.is_symlink() and path.stat().st_mode & 0o6022
        ]
        packages = agent.settings.packages / str(builder_account.INSTALLER)
        tight = replace(agent.settings, cache_bytes=1)
        assert packages in cache.trim(tight)
        assert not packages.exists()

    def test_is_no_account_that_builds(self) -> None:
        installer = builder_account.INSTALLER
        assert installer in builder_account.UIDS
        assert builder_account.is_installer_free(None)
        assert not builder_account.is_installer_free(range(installer - 5, installer + 5))


def test_a_lock_without_its_indexes_keeps_all_else() -> None:
    options = "--index-url http://a\n--extra-index-url http://b\n"
    rest = "x==1 \\\n    --hash=sha256:0\n    # from http://a\n"
    assert without_indexes(options + rest) == rest


@pytest.mark.parametrize(
    ("output", "sentence"),
    [
        (
            "+ x\nerror: Failed to download `a==1`\ncause: HTTP status server error (502 Bad Gateway)",
            "Failed to download `a==1`: HTTP status server error (502 Bad Gateway)",
        ),
        (
            "error: Failed to write\ncause: No space left on device (os error 28)",
            "the disk of this node is full",
        ),
        ("error: x\ncause: Hash mismatch for `a==1`", "the file of a==1 on the index is not the one"),
        ("", "it wrote no message"),
    ],
)
def test_errors_of_uv_become_a_sentence(output: str, sentence: str) -> None:
    assert uv_error(output.splitlines()).startswith(sentence)
