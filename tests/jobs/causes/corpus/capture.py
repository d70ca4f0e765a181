"""Provoke the cases and keep their logs: `python -m tests.jobs.causes.corpus.capture PYTHON [CASE …]` (the
frameworks environment's).

Each case leaves `logs/<case>/<rank>.txt` and `ends.json`: rank -> exit code, signal, when (seconds from the
start), by_us."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from tests.jobs.causes.corpus.alone import ALONE
from tests.jobs.causes.corpus.case import Case
from tests.jobs.causes.corpus.frameworks import FRAMEWORKS
from tests.jobs.causes.corpus.together import TOGETHER

HERE = Path(__file__).resolve().parent
LOGS = HERE / "logs"
CASES = ALONE | FRAMEWORKS | TOGETHER
LONGEST_S = 120
KEPT_BYTES = 24 * 1024
UNDER_MPI = 'n=$OMPI_COMM_WORLD_RANK; "$@" >$n.log 2>&1; c=$?; echo $c $(date +%s.%N) >$n.end; exit {code}'


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def commands(case: Case, python: str, port: int) -> list[tuple[list[str], dict[str, str]]]:
    """argv and environment of every rank."""
    script = ["nothere.py"] if case.launch in ("absent", "torchrun_absent") else ["train.py"]
    plain = [python, *script, *case.arguments]
    if case.launch.startswith("torchrun") or case.launch == "launch":
        module = "torch.distributed.launch" if case.launch == "launch" else "torch.distributed.run"
        options = [f"--nproc-per-node={case.processes}", "--master-addr=127.0.0.1", f"--master-port={port}"]
        return [([python, "-m", module, *options, *script, *case.arguments], {})]
    if case.launch == "module":
        return [([python, "-m", *case.arguments], {})]
    if case.launch in ("tensorflow", "empty_ps"):
        workers = [f"127.0.0.1:{free_port()}" for _ in range(case.processes)]
        cluster: dict[str, Any] = {"worker": workers} | ({"ps": []} if case.launch == "empty_ps" else {})
        configs = [
            {"cluster": cluster, "task": {"type": "worker", "index": rank}} for rank in range(case.processes)
        ]
        return [(plain, {"TF_CONFIG": json.dumps(config)}) for config in configs]
    shared = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port), "WORLD_SIZE": str(case.processes)}
    return [(plain, {**shared, "RANK": str(rank), "LOCAL_RANK": str(rank)}) for rank in range(case.processes)]


def run(case: Case, python: str, folder: Path) -> dict[int, dict[str, Any]]:
    """Start the ranks, wait for the first that fails, let the others linger, then end them."""
    for name, text in {"train.py": case.script, **case.files}.items():
        (folder / name).write_text(text)
    port = free_port()
    base = {name: os.environ[name] for name in ("PATH", "HOME", "LANG") if name in os.environ}
    base |= {"PYTHONUNBUFFERED": "1", "OMP_NUM_THREADS": "1", "GLOO_SOCKET_IFNAME": "lo", "HOSTNAME": "alpha"}
    if case.launch.startswith("mpi"):
        cure = {
            "PYTHONPATH": str(HERE.parents[3] / "trainhub_node" / "sitecustomize")
        }  # else mpi4py waits for ever
        return mpi(case, python, folder, base | cure | dict(case.env))
    held = socket.create_server(("127.0.0.1", port)) if case.launch == "taken" else None
    began, ranks = time.time(), {}
    for rank, (argv, env) in enumerate(commands(case, python, port)):
        with (folder / f"{rank}.log").open("wb") as log:
            ranks[rank] = subprocess.Popen(
                argv,
                cwd=folder,
                env=base | env | dict(case.env),
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
    ends = wait(ranks, began, case.linger_s)
    if held:
        held.close()
    return ends


def wait(
    ranks: dict[int, subprocess.Popen[bytes]], began: float, linger_s: float
) -> dict[int, dict[str, Any]]:
    ends: dict[int, dict[str, Any]] = {}
    stop_at, told = began + LONGEST_S, False
    while len(ends) < len(ranks):
        for rank, process in ranks.items():
            code = process.poll()
            if rank in ends or code is None:
                continue
            ends[rank] = {
                "exit_code": code if code >= 0 else None,
                "signal": -code if code < 0 else None,
                "at": round(time.time() - began, 3),
                "by_us": told,
            }
            if code:
                stop_at = min(stop_at, time.time() + linger_s)
        if time.time() >= stop_at and not told and len(ends) < len(ranks):
            told = True
            for rank, process in ranks.items():
                if rank not in ends:
                    os.killpg(
                        process.pid, signal.SIGTERM if time.time() < began + LONGEST_S else signal.SIGKILL
                    )
        time.sleep(0.002)
    return ends


def mpi(case: Case, python: str, folder: Path, env: dict[str, str]) -> dict[int, dict[str, Any]]:
    """mpirun kills the peers of the first that exits with an error; `mpi_lenient` hides the codes from it for
    a while."""
    began = time.time()
    ending = "$c" if case.launch == "mpi" else "$(sleep 8; echo $c)"
    mpirun = ["mpirun", "--allow-run-as-root", "--oversubscribe", "-np", str(case.processes)]
    shell = ["sh", "-c", UNDER_MPI.format(code=ending), "sh"]
    with (folder / "mpirun.log").open("wb") as log:
        argv = [*mpirun, *shell, python, "train.py", *case.arguments]
        subprocess.run(
            argv, cwd=folder, env=env, stdout=log, stderr=subprocess.STDOUT, timeout=LONGEST_S, check=False
        )
    ends = {}
    for rank in range(case.processes):
        file = folder / f"{rank}.end"
        code, at = file.read_text().split() if file.exists() else ("", "0")
        exited = int(code) if code and int(code) < 128 else None
        ends[rank] = {
            "exit_code": exited,
            "signal": None if exited is not None else int(code or 137) - 128,
            "at": round(float(at) - began, 3) if code else round(time.time() - began, 3),
            "by_us": exited is None,
        }
    return ends


def scrubbed(text: bytes, folder: Path, python: str) -> bytes:
    """Without what tells of the machine that provoked it."""
    host = socket.gethostname()
    names = {
        str(Path(python).resolve().parent.parent): "/opt/python",
        str(Path(python).parent.parent): "/env",
        str(folder): "/job/code",
        host: "alpha",
    }
    for real, shown in names.items():
        text = text.replace(real.encode(), shown.encode())
    return re.sub(rb"/tmp/[\w./-]+|/root/[\w./-]+", b"/scratch", text)


def capture(name: str, python: str) -> None:
    case = CASES[name]
    for _ in range(40):
        with tempfile.TemporaryDirectory() as made:
            folder = Path(made)
            ends = run(case, python, folder)
            if case.launch == "until_aborted" and not any(
                end["signal"] == signal.SIGABRT for end in ends.values()
            ):
                continue
            kept = LOGS / name
            shutil.rmtree(kept, ignore_errors=True)
            kept.mkdir(parents=True)
            for rank in ends:
                (kept / f"{rank}.txt").write_bytes(
                    scrubbed((folder / f"{rank}.log").read_bytes(), folder, python)[-KEPT_BYTES:]
                )
            (kept / "ends.json").write_text(json.dumps(ends, indent=1) + "\n")
            sys.stdout.write(f"{name} {json.dumps(ends)}\n")
            return
    sys.stdout.write(f"{name} did not happen\n")


if __name__ == "__main__":
    for chosen in sys.argv[2:] or sorted(name for name, case in CASES.items() if case.launch != "namespaces"):
        capture(chosen, sys.argv[1])
