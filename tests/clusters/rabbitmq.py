"""A real RabbitMQ with its management plugin, started by hand on free ports."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx

from tests.hub import eventually, free_port
from trainhub.up.children import end_with_parent


@dataclass(frozen=True)
class Rabbit:
    url: str
    api_url: str


@contextmanager
def rabbit(folder: Path) -> Iterator[Rabbit]:
    """Ready when the block begins; everything of it ends with the block."""
    amqp, api, epmd = free_port(), free_port(), free_port()
    running = Rabbit(f"amqp://guest:guest@127.0.0.1:{amqp}//", f"http://guest:guest@127.0.0.1:{api}")
    env = _environ(folder, amqp, api, epmd)
    programs = _programs()
    with (folder / "console").open("w") as console:
        server = subprocess.Popen(
            [programs / "rabbitmq-server"],
            env=env,
            stdout=console,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            preexec_fn=end_with_parent(),  # noqa: PLW1509 - only prctl
        )
    try:
        eventually(lambda: _answers(running), 90, (folder / "console").read_text())
        yield running
    finally:
        stop = [str(programs / "rabbitmqctl"), "-n", env["RABBITMQ_NODENAME"], "shutdown"]
        subprocess.run(stop, env=env, check=False, stdout=subprocess.DEVNULL)
        server.wait(30)
        subprocess.run(
            ["epmd", "-kill"], env=env, check=False, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )


def _programs() -> Path:
    found = sorted(Path("/usr/lib/rabbitmq/lib").glob("rabbitmq_server-*/sbin"))
    if found:
        return found[-1]  # Debian's wrapper on the PATH wants to be root or rabbitmq, and its own folders
    on_path = shutil.which("rabbitmq-server")
    assert on_path, "rabbitmq-server is missing; .ci/system-packages installs it"
    return Path(os.path.realpath(on_path)).parent


def _environ(folder: Path, amqp: int, api: int, epmd: int) -> dict[str, str]:
    settings = (
        f"listeners.tcp.1 = 127.0.0.1:{amqp}\nmanagement.tcp.ip = 127.0.0.1\nmanagement.tcp.port = {api}\n"
    )
    (folder / "rabbitmq.conf").write_text(settings)
    (folder / "plugins").write_text("[rabbitmq_management].\n")
    own = {
        "NODENAME": f"tests{amqp}@localhost",
        "MNESIA_BASE": f"{folder}/mnesia",
        "LOG_BASE": f"{folder}/log",
        "CONFIG_FILE": f"{folder}/rabbitmq",
        "ENABLED_PLUGINS_FILE": f"{folder}/plugins",
        "PID_FILE": f"{folder}/pid",
        "DIST_PORT": str(free_port()),
    }
    names = {f"RABBITMQ_{name}": value for name, value in own.items()}
    return {
        **os.environ,
        **names,
        "ERL_EPMD_PORT": str(epmd),
        "ERL_EPMD_ADDRESS": "127.0.0.1",
        "HOME": str(folder),
    }


def _answers(running: Rabbit) -> bool:
    try:
        return httpx.get(f"{running.api_url}/api/overview", timeout=5).is_success
    except httpx.TransportError:
        return False
