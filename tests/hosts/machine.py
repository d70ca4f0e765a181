"""One machine as a network namespace: own network, host name, processes, shared memory and /tmp; can be cut
off and crash."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import uuid
from collections.abc import Mapping, Sequence
from pathlib import Path

from tests.hosts import processes
from tests.hosts.wiring import Bridge, ip
from tests.hub import eventually

# PID 1 of the machine: it only reaps.
INIT = """
import os, signal
signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGCHLD})
while True:
    signal.sigwait({signal.SIGCHLD})
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    except ChildProcessError:
        pass
"""
# Both are a matter of milliseconds, but of many seconds on a machine that is as busy as tests make it.
BOOTED_S = KILLED_S = 60.0


class Machine:
    """`boot`, `run` something on it, `cut` and `heal` its network, `crash` it. `folder` is its /tmp as seen
    from outside."""

    def __init__(self, bridge: Bridge, number: int, folder: Path, visible: Sequence[Path]) -> None:
        self.bridge = bridge
        self.name = bridge.host_name(number)
        self.address = bridge.address(number)
        self.link = bridge.link(number)
        self.folder = folder
        self._core = str(number % (os.cpu_count() or 1))
        self._visible = visible
        self._outer: subprocess.Popen[bytes] | None = None
        self.init = 0

    def boot(self) -> None:
        """Start its first process; another boot id each time, as after a power cut."""
        self.folder.mkdir(parents=True, exist_ok=True)
        boot_id = self.folder / "boot_id"
        boot_id.write_text(f"{uuid.uuid4()}\n")
        stored = [path for path in self._visible if path.is_relative_to("/tmp")]
        for path in stored:
            (self.folder / path.relative_to("/tmp")).mkdir(parents=True, exist_ok=True)
        script = [f"hostname {self.name}", f"mount --bind {boot_id} /proc/sys/kernel/random/boot_id"]
        script += [f"mount --bind {path} {self.folder / path.relative_to('/tmp')}" for path in stored]
        script += [f"mount --rbind {self.folder} /tmp", f'exec {sys.executable} -I -S -c "$TH_INIT"']
        self._outer = subprocess.Popen(
            [
                "ip",
                "netns",
                "exec",
                self.bridge.namespace(self.name),
                "unshare",
                "-u",
                "-p",
                "-m",
                "-i",
                "-f",
                "--kill-child=SIGKILL",
                "--mount-proc",
                "sh",
                "-ec",
                "\n".join(script),
            ],
            stdin=subprocess.DEVNULL,
            start_new_session=True,
            env={**os.environ, "TH_INIT": INIT},
            cwd="/",
        )
        self.init = eventually(self._find_init, BOOTED_S, f"{self.name} boots")

    def _find_init(self) -> int:
        assert self._outer is not None
        assert self._outer.poll() is None, f"{self.name} did not boot"
        for child in processes.children(self._outer.pid):
            # A program of the boot script may have ended meanwhile.
            with contextlib.suppress(FileNotFoundError, ProcessLookupError):
                if b"sigwait" in Path(f"/proc/{child}/cmdline").read_bytes():
                    return child
        return 0

    @property
    def up(self) -> bool:
        return self._outer is not None and self._outer.poll() is None

    def inside(self, *command: str) -> list[str]:
        """The argv that runs `command` on this machine, on the one core that it has of this computer: ranks
        of several machines with a thread per core of it would spend most of their time waiting."""
        return ["taskset", "-c", self._core, "nsenter", "-t", str(self.init), "-a", "--", *command]

    def run(
        self, *command: str, check: bool = True, timeout: float = 120, env: Mapping[str, str] | None = None
    ) -> subprocess.CompletedProcess[str]:
        done = subprocess.run(
            self.inside(*command),
            capture_output=True,
            text=True,
            timeout=timeout,
            check=False,
            cwd="/",
            env={**os.environ, **(env or {})},
        )
        assert not check or done.returncode == 0, f"{command} on {self.name}: {done.stdout}\n{done.stderr}"
        return done

    def spawn(self, log: Path, *command: str, **env: str) -> None:
        """Start a service of this machine; it ends with the machine."""
        with log.open("ab") as file:
            subprocess.Popen(
                self.inside(*command),
                stdin=subprocess.DEVNULL,
                stdout=file,
                stderr=file,
                start_new_session=True,
                env={**os.environ, **env},
                cwd="/",
            )

    def cut(self) -> None:
        """Pull the cable: nothing answers, nothing is refused."""
        ip("link", "set", self.link, "down")

    def heal(self) -> None:
        ip("link", "set", self.link, "up")

    def crash(self) -> None:
        """Power loss: the cable first, lest the kernel says goodbye for the dead."""
        self.cut()
        self.stop()
        self.heal()

    def stop(self) -> None:
        """End everything on it. The network stays, so peers are told at once."""
        if self._outer is None:
            return
        if self.init:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.init, signal.SIGKILL)
        else:
            # It did not boot in time. What should have become its first process ends with this one.
            self._outer.kill()
        self._outer.wait(KILLED_S)
        self.init = 0

    def pids(self) -> list[int]:
        """All its processes, by their numbers outside."""
        if not self.init:
            return []
        own = processes.space(self.init)
        return [pid for pid in processes.everyone() if processes.space(pid) == own]

    def marked(self, run: str) -> list[str]:
        """Command lines of the living processes that carry the mark of this run."""
        mark = f"TRAINHUB_RUN_ID={run}".encode()
        return [
            processes.command(pid)
            for pid in self.pids()
            if mark in processes.read(pid, "environ").split(b"\0") and processes.lives(pid)
        ]

    def pid_of(self, text: str) -> int:
        """The one living process whose command line holds `text`, by its number outside."""
        result = [pid for pid in self.pids() if text in processes.command(pid) and processes.lives(pid)]
        assert len(result) == 1, f"{text} on {self.name}: {[processes.command(pid) for pid in result]}"
        return result[0]
