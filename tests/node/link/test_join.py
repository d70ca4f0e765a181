"""`trainhub-node join` and `status`, as a person types them: the one-time token is spent only when all else
is right."""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.hub import PROJECT
from tests.node.link.joinable import NODE_TOKEN, SECRET, Joinable
from trainhub import certificates

Command = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def hub(tmp_path: Path) -> Iterator[Joinable]:
    with Joinable(tmp_path / "tls").serving() as instance:
        yield instance


@pytest.fixture
def plain() -> Iterator[Joinable]:
    with Joinable(None).serving() as instance:
        yield instance


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "below" / "node"


@pytest.fixture
def node(folder: Path) -> Command:
    """Run `trainhub-node COMMAND … --dir folder`."""
    stored = {name: value for name, value in os.environ.items() if not name.startswith("TRAINHUB_")}

    def run(*words: str, **env: str) -> subprocess.CompletedProcess[str]:
        argv = [sys.executable, "-m", "trainhub_node", *words, "--dir", str(folder)]
        return subprocess.run(
            argv,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
            env={**stored, "PYTHONPATH": str(PROJECT), **env},
        )

    return run


def reserved(folder: Path) -> dict[str, Any]:
    result: dict[str, Any] = json.loads((folder / "node.json").read_text())
    return result


class TestJoin:
    def test_keeps_the_nodes_own_token_and_the_hubs_authority_private(
        self, hub: Joinable, node: Command, folder: Path
    ) -> None:
        done = node("join", hub.url, "--token", hub.token, "--name", "gpu-7", "--slots", "3")

        assert (done.returncode, done.stderr.splitlines()[0]) == (
            0,
            f"This machine is now gpu-7 of cluster main, at {hub.url}.",
        )
        assert reserved(folder) == {
            "hub_url": hub.url,
            "token": NODE_TOKEN,
            "name": "gpu-7",
            "cluster": "main",
            "slots": "3",
        }
        assert (folder / "hub-ca.pem").read_text() == hub.ca
        assert {path.name: stat.S_IMODE(path.stat().st_mode) for path in folder.iterdir()} == {
            "node.json": 0o600,
            "hub-ca.pem": 0o600,
        }
        assert [(requests["token"], requests["name"]) for requests in hub.spent] == [(SECRET, "gpu-7")]

    def test_leaves_the_name_to_the_token(self, hub: Joinable, node: Command, folder: Path) -> None:
        assert node("join", hub.url, "--token", hub.token).returncode == 0

        assert (reserved(folder)["name"], hub.spent[0]["name"]) == ("gpu-a", "")

    def test_prints_a_unit_of_this_interpreter(self, hub: Joinable, node: Command, folder: Path) -> None:
        done = node("join", hub.url, "--token", hub.token, "--systemd")

        assert f"ExecStart={sys.executable} -m trainhub_node run --dir {folder}" in done.stdout
        assert "KillMode=process" in done.stdout
        assert "Restart=always" in done.stdout
        assert "systemctl" in done.stderr
        assert node("unit").stdout == done.stdout

    def test_once_more_only_on_demand(self, hub: Joinable, node: Command, folder: Path) -> None:
        assert node("join", hub.url, "--token", hub.token).returncode == 0
        before = reserved(folder)

        again = node("join", hub.url, "--token", hub.token, "--name", "other")

        assert again.returncode == 1
        assert f"{folder} is already the folder of node gpu-a at {hub.url}; add --replace" in again.stderr
        assert reserved(folder) == before
        assert node("join", hub.url, "--token", hub.token, "--name", "other", "--replace").returncode == 0
        assert (reserved(folder)["name"], hub.spent[-1]["replace"]) == ("other", True)

    def test_believes_the_authority_that_the_person_names_and_keeps_it(
        self, hub: Joinable, node: Command, folder: Path, tmp_path: Path
    ) -> None:
        """Of a proxy, which the token does not know."""
        authority = tmp_path / "proxy.pem"
        authority.write_text(hub.ca)
        done = node("join", hub.url, "--token", SECRET, TRAINHUB_HUB_CA=str(authority))
        assert done.returncode == 0, done.stderr
        authority.unlink()
        assert (folder / "hub-ca.pem").read_text() == hub.ca
        assert node("status").returncode == 0


class TestRefusals:
    """Each names what to change, spends no token and leaves nothing behind."""

    @pytest.fixture(autouse=True)
    def _nothing_is_left(self, hub: Joinable, plain: Joinable, folder: Path) -> Iterator[None]:
        yield
        assert not folder.parent.exists()
        assert hub.spent == plain.spent == []

    @pytest.mark.parametrize(
        ("words", "message"),
        [
            (("--interface", "eth77"), "--interface eth77 is not an interface here; there are: "),
            (("--address", "here"), "--address here must be an IP address"),
            (("--run-as", "no-such-account"), "--run-as no-such-account is not an account of this machine"),
            (("--slots", "many"), "--slots many must be a whole number above 0"),
            (("--name", "gpu a"), "--name gpu a must be up to 50 letters"),
            (("--token", "thj_short"), "--token is no whole join token"),
            (("--token", "thn_" + "x" * 43), "--token is a node's own token"),
        ],
    )
    def test_of_flags(self, hub: Joinable, node: Command, words: tuple[str, ...], message: str) -> None:
        done = node("join", hub.url, "--token", hub.token, *words)

        assert done.returncode == 1
        assert message in done.stderr

    def test_of_a_python_that_does_not_start(self, hub: Joinable, node: Command) -> None:
        done = node("join", hub.url, "--token", hub.token, TRAINHUB_NODE_PYTHON="/usr/bin/false")

        assert (done.returncode, "/usr/bin/false does not start as a Python" in done.stderr) == (1, True)

    def test_of_another_authority_than_the_tokens(self, hub: Joinable, node: Command) -> None:
        done = node("join", hub.url, "--token", f"{SECRET}.{'0' * 64}")

        assert (done.returncode, "somebody may stand between" in done.stderr) == (1, True)

    def test_of_a_server_that_the_authority_did_not_certify(
        self, hub: Joinable, node: Command, tmp_path: Path
    ) -> None:
        """Anybody can show the hub's authority; only the hub has a certificate from it."""
        assert hub.tls is not None
        certificates.ensure(tmp_path / "other", ["127.0.0.1"])
        (hub.tls / "ca.pem").write_text((tmp_path / "other" / "ca.pem").read_text())

        done = node("join", hub.url, "--token", hub.token)

        assert (done.returncode, "the hub's certificate does not hold" in done.stderr) == (1, True)

    def test_of_a_certificate_that_nobody_vouches_for(self, hub: Joinable, node: Command) -> None:
        done = node("join", hub.url, "--token", SECRET)

        assert (done.returncode, "copy all of it, or take a new one" in done.stderr) == (1, True)

    def test_of_plain_http_to_another_machine(self, node: Command) -> None:
        done = node("join", "http://192.0.2.1:8000", "--token", SECRET)

        assert (done.returncode, "is not encrypted" in done.stderr, "--insecure-http" in done.stderr) == (
            1,
            True,
            True,
        )

    def test_of_plain_http_to_a_hub_of_tls(self, hub: Joinable, node: Command) -> None:
        done = node("join", hub.url.replace("https", "http"), "--token", hub.token)

        assert (done.returncode, "must begin with https://" in done.stderr) == (1, True)

    def test_of_a_clock_that_is_far_off(self, plain: Joinable, node: Command) -> None:
        plain.clock_ahead_s = 3600

        done = node("join", plain.url, "--token", plain.token)

        assert done.returncode == 1
        assert (
            "clock is 3600 s behind the hub's; set it" in done.stderr
            or "clock is 3601 s behind" in done.stderr
        )

    def test_of_a_hub_that_is_not_there(self, plain: Joinable, node: Command) -> None:
        done = node("join", "http://127.0.0.1:9", "--token", SECRET)

        assert (done.returncode, "the hub at http://127.0.0.1:9 cannot be reached" in done.stderr) == (
            1,
            True,
        )

    def test_in_the_hubs_own_words(self, hub: Joinable, node: Command) -> None:
        hub.refusal = 410, {"title": "Gone", "detail": "token: it was used at 12:00 by gpu-b."}

        done = node("join", hub.url, "--token", hub.token)

        assert (done.returncode, "the hub refused: token: it was used at 12:00 by gpu-b." in done.stderr) == (
            1,
            True,
        )

    def test_of_a_run_before_the_join(self, node: Command) -> None:
        done = node("run")

        assert (done.returncode, "this machine is no node yet" in done.stderr) == (1, True)


class TestStatus:
    def test_of_a_node_that_the_hub_accepts(self, hub: Joinable, node: Command) -> None:
        node("join", hub.url, "--token", hub.token)

        done = node("status")

        assert done.returncode == 0, done.stdout
        lines = {line.split()[1]: line for line in done.stdout.splitlines()}
        assert f"{hub.url} accepts this node as gpu-a of cluster main" in lines["hub"]
        assert lines["clock"].startswith("ok")
        assert lines["broker"].startswith("note")
        assert "127.0.0.1 on lo" in lines["address"]

    def test_of_a_revoked_one(self, hub: Joinable, node: Command) -> None:
        node("join", hub.url, "--token", hub.token)
        hub.welcome = False

        done = node("status")

        assert (done.returncode, "does not accept this node" in done.stdout) == (1, True)

    def test_of_an_unreachable_broker_and_a_wrong_clock(self, hub: Joinable, node: Command) -> None:
        node("join", hub.url, "--token", hub.token)
        hub.config["broker_url"] = "redis://gpu-a:of-tests-only@127.0.0.1:9/0"
        hub.clock_ahead_s = 90

        done = node("status")

        assert done.returncode == 1
        assert "of-tests-only" not in done.stdout
        assert [line.split()[1] for line in done.stdout.splitlines() if line.startswith("wrong")] == [
            "clock",
            "broker",
        ]
