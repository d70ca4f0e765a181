"""Two hosts, two ranks on each: how long a launch takes beside mpirun and torchrun started by hand over ssh
on the same hosts, how long until a canceled run is gone, and how soon a lost host is told.

Needs root, iproute2, openssh-server and Open MPI. The hosts are network namespaces, the ranks only print:
what is measured is the launch, not the network or the training."""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from bench.support.ssh import Shells
from tests.harness import guard
from tests.hosts.bench import Host, Hosts
from tests.hub import eventually, free_port

EACH = 2
RANKS = 2 * EACH
HELLO = "print('first line', flush=True)\n"
DEAF = """
import signal, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
print('here', flush=True)
time.sleep(600)
"""
WILLING = "import time; print('here', flush=True); time.sleep(600)\n"
MEET = ("--node_rank", "$NODE_RANK", "--master_addr", "$MASTER_ADDR", "--master_port", "$MASTER_PORT")
PER_PROCESS = {"type": "pytorch", "communication_backend": "gloo", "process_count": RANKS, "node_count": 2}
PER_NODE = {"type": "pytorch", "communication_backend": "gloo", "node_count": 2}
MPI = {"type": "mpi", "process_count_per_node": EACH, "node_count": 2}
GRACE_S = 2
RATIO, FIXED_S = 1.3, 0.7
UNREACHABLE_S, LOST_AFTER_S = 15.0, 60.0


class Bench:
    def __init__(self, hosts: Hosts, shells: Shells) -> None:
        self.hosts = hosts
        self.shells = shells
        self.snapshots = {text: hosts.runs.snapshot(main_py=text) for text in (HELLO, DEAF, WILLING)}

    def submit(self, text: str, distribution: dict[str, Any], **spec: Any) -> str:
        source = {"type": "snapshot", "id": self.snapshots[text]}
        what = spec if "command" in spec else {"script": "main.py", **spec}
        return self.hosts.submit(
            {"source": source, "experiment": "bench", "distribution": distribution, **what}
        )

    def logs(self, run: str) -> Path:
        return self.hosts.hub.data_dir / "runs" / run / "1" / "logs"

    def lines(self, run: str) -> int:
        return sum(path.read_bytes().count(b"\n") for path in self.logs(run).glob("70_*"))

    def launch(self, distribution: dict[str, Any], **spec: Any) -> float:
        """The API's answer -> every rank's first line, in the hub."""
        run = self.submit(HELLO, distribution, **spec)
        begun = time.monotonic()
        while self.lines(run) < RANKS:
            if time.monotonic() - begun > 60:
                raise RuntimeError(f"no lines after 60 s: {self.hosts.runs.detail(run)}")
            time.sleep(0.002)
        took = time.monotonic() - begun
        self.hosts.runs.ended(run)
        return took

    def started(self, text: str, distribution: dict[str, Any], **spec: Any) -> str:
        run = self.submit(text, distribution, limits={"grace_s": GRACE_S}, **spec)
        eventually(lambda: self.lines(run) >= RANKS, 60, "all ranks are there")
        return run

    def cancel(self, text: str, distribution: dict[str, Any]) -> float:
        """Asked for -> no process of the run on any host."""
        run = self.started(text, distribution)
        begun = time.monotonic()
        self.hosts.runs.client.post(f"/api/v1/runs/{run}/cancel/").raise_for_status()
        eventually(
            lambda: not any(host.marked(run) for host in self.hosts.hosts), 30, "all processes are gone"
        )
        took = time.monotonic() - begun
        self.hosts.runs.ended(run)
        return took

    def cut(self, distribution: dict[str, Any], gone: Host) -> tuple[float, float]:
        """The cable pulled -> shown as unreachable, and -> the run has failed. Then all is mended."""
        run = self.started(WILLING, distribution)
        gone.cut()
        begun = time.monotonic()
        try:
            self.hosts.until(gone, "unreachable", seconds=60)
            shown = time.monotonic() - begun
            ended = self.hosts.runs.ended(run, LOST_AFTER_S + 60)
            failed = time.monotonic() - begun
        finally:
            gone.heal()
        print(f"    {ended['state']}: {ended['sentence']}")
        self.hosts.until(gone, "ready")
        eventually(lambda: not any(host.marked(run) for host in self.hosts.hosts), 60, "no process is left")
        return shown, failed


def compare(name: str, rounds: int, ours: Callable[[], float], theirs: Callable[[], float]) -> None:
    """In turn, so that whatever else the machine does meets both."""
    pairs = [(ours(), theirs()) for _ in range(rounds + 1)][1:]
    mine, other = (statistics.median(column) for column in zip(*pairs, strict=True))
    limit = RATIO * other + FIXED_S
    print(
        f"{name:<42} TrainHub {mine:6.2f} s   by hand {other:6.2f} s   ratio {mine / other:5.2f}   "
        f"difference {mine - other:+6.2f} s   limit {limit:5.2f} s {verdict(mine, limit)}   n={rounds}"
    )
    print(f"    each: {'  '.join(f'{one:.2f}/{two:.2f}' for one, two in pairs)}")


def verdict(took: float, limit: float) -> str:
    return "held" if took <= limit else "MISSED"


def launches(bench: Bench, rounds: int) -> None:
    script = ("python", "/tmp/main.py")
    torchrun = ["torchrun", "--nproc_per_node", str(EACH), "--nnodes", "2", *MEET, "main.py"]
    shells = bench.shells

    def by_torchrun() -> float:
        return shells.until_lines(shells.torchrun(script[1:], EACH, free_port()), RANKS)

    def by_mpirun() -> float:
        return shells.until_lines(shells.mpirun(script, EACH), RANKS)

    compare("MPI, beside mpirun", rounds, lambda: bench.launch(MPI), by_mpirun)
    compare("PyTorch per process, beside torchrun", rounds, lambda: bench.launch(PER_PROCESS), by_torchrun)
    compare(
        "PyTorch per node: torchrun itself",
        rounds,
        lambda: bench.launch(PER_NODE, command=torchrun),
        by_torchrun,
    )


def endings(bench: Bench, rounds: int) -> None:
    for kind, distribution in (("PyTorch", PER_PROCESS), ("MPI", MPI)):
        for manner, text in (("heed SIGTERM", WILLING), ("ignore SIGTERM", DEAF)):
            took = [bench.cancel(text, distribution) for _ in range(rounds)]
            limit = GRACE_S + 1.0
            print(
                f"cancel of 2 x 2 {kind}, ranks {manner:<14} -> all gone: median "
                f"{statistics.median(took):5.2f} s, "
                f"most {max(took):5.2f} s   limit {limit:.1f} s {verdict(max(took), limit)}   n={rounds}"
            )


def losses(bench: Bench) -> None:
    for kind, distribution in (("PyTorch", PER_PROCESS), ("MPI", MPI)):
        for which, gone in zip(("head", "other"), bench.hosts.hosts, strict=True):
            shown, failed = bench.cut(distribution, gone)
            limit = LOST_AFTER_S + 5
            print(
                f"link of the {which} host cut, {kind}: unreachable after {shown:.1f} s "
                f"{verdict(shown, UNREACHABLE_S)}, "
                f"failed after {failed:.1f} s {verdict(failed, limit)}"
            )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--frameworks-python", required=True, help="a python with torch, as .ci/frameworks-env prints it"
    )
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--only", choices=["launches", "endings", "losses"], help="one part of it")
    given = parser.parse_args()
    guard.start()
    with tempfile.TemporaryDirectory(prefix="th-hosts-") as folder:
        guard.own_folder(folder)
        settings = {"NODE_LOST_AFTER": f"{LOST_AFTER_S:.0f}"}
        hosts = Hosts(Path(folder), given.frameworks_python, settings=settings)
        try:
            hosts.start()
            for host in hosts.hosts:
                (host.folder / "main.py").write_text(HELLO)
            shells = Shells(list(hosts.hosts), Path(folder), given.frameworks_python)
            shells.start()
            bench = Bench(hosts, shells)
            if given.only in (None, "launches"):
                launches(bench, given.rounds)
            if given.only in (None, "endings"):
                endings(bench, 3)
            if given.only in (None, "losses"):
                losses(bench)
        finally:
            hosts.stop()


if __name__ == "__main__":
    main()
