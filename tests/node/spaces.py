"""Two hosts on one machine: network namespaces on a bridge, with host names and temporary folders of their
own."""

from __future__ import annotations

import secrets
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.harness import guard
from tests.hosts.wiring import free_net


@dataclass(frozen=True)
class Space:
    """`interface` differs from host to host, as on real ones; `outer` is its end on the bridge."""

    name: str
    address: str
    interface: str
    folder: Path
    outer: str

    def cut(self) -> None:
        _ip("link", "set", self.outer, "down")

    def heal(self) -> None:
        _ip("link", "set", self.outer, "up")


def _ip(*words: str) -> None:
    done = subprocess.run(["ip", *words], capture_output=True, text=True, check=False)
    if done.returncode:
        message = f"ip {' '.join(words)}: {done.stderr.strip()}"
        pytest.fail(f"Network namespaces cannot be made here ({message}); run this test as root.")


@contextmanager
def two_spaces() -> Iterator[tuple[str, list[Space]]]:
    """(the bridge's own address, the hosts)."""
    tag, network = f"tn{secrets.token_hex(3)}", free_net()
    with ExitStack() as stack:
        bridge = f"{tag}b"
        guard.on_exit("ip", "link", "del", bridge)
        _ip("link", "add", bridge, "type", "bridge")
        stack.callback(_ip, "link", "del", bridge)
        _ip("addr", "add", f"{network}.254/24", "dev", bridge)
        _ip("link", "set", bridge, "up")
        yield f"{network}.254", [_space(stack, tag, bridge, network, number) for number in range(2)]


def _space(stack: ExitStack, tag: str, bridge: str, network: str, number: int) -> Space:
    name, outer, inner, address = (
        f"{tag}n{number}",
        f"{tag}v{number}",
        f"eth{number}",
        f"{network}.{number + 1}",
    )
    guard.on_exit("ip", "netns", "del", name)
    guard.on_exit("rm", "-rf", f"/etc/netns/{name}")
    _ip("netns", "add", name)
    stack.callback(_ip, "netns", "del", name)
    _ip("link", "add", outer, "type", "veth", "peer", "name", inner, "netns", name)
    _ip("link", "set", outer, "master", bridge, "up")
    for words in (
        ("link", "set", "lo", "up"),
        ("link", "set", inner, "up"),
        ("addr", "add", f"{address}/24", "dev", inner),
    ):
        _ip("-n", name, *words)
    files = Path("/etc/netns", name)
    files.mkdir(parents=True)
    stack.callback(shutil.rmtree, files)
    (files / "hosts").write_text(f"127.0.0.1 localhost\n{address} {name}\n")
    # A look-up that waits for a name server that cannot be reached takes 10 s.
    (files / "nsswitch.conf").write_text("hosts: files\n")
    # Short, because Open MPI puts sockets there; passable, for ranks of another account.
    folder = Path(tempfile.mkdtemp(prefix="tn"))
    guard.own_folder(folder)
    guard.on_exit("rm", "-rf", str(folder))
    folder.chmod(0o711)
    stack.callback(shutil.rmtree, folder)
    return Space(name, address, inner, folder, outer)


@contextmanager
def agent_in(
    space: Space, env: Mapping[str, str], python: Sequence[str] = (sys.executable,)
) -> Iterator[subprocess.Popen[bytes]]:
    """An agent on that host, killed at the end. `python`: the beginning of its command."""
    temporary = space.folder / "tmp"
    temporary.mkdir(exist_ok=True)
    temporary.chmod(0o1777)
    argv = [
        "ip",
        "netns",
        "exec",
        space.name,
        "unshare",
        "--uts",
        "sh",
        "-c",
        'hostname "$0"; exec "$@"',
        space.name,
        *python,
        "-m",
        "trainhub_node",
        "run",
    ]
    env = {**env, "TMPDIR": str(temporary), "TRAINHUB_NODE_NAME": space.name}
    process = subprocess.Popen(argv, env=env, start_new_session=True)
    try:
        yield process
    finally:
        process.kill()
        process.wait(10)
