"""CPU time of the command line: `trainhub --help` and `trainhub ls` beside a Python that does nothing, and
beside MLflow's command."""

from __future__ import annotations

import argparse
import os
import resource
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from bench.support.limits import Limits, median
from bench.support.stack import ROOT, stack

ROUNDS = 15
# It takes seconds each time.
MLFLOW_ROUNDS = 3
# 120 and 200 ms where Python starts in 20 ms.
MAX_HELP, MAX_LIST = 6, 10
MAX_SHARE_OF_MLFLOW = 1 / 5


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=ROUNDS, help="of each of ours, in turn")
    rounds = parser.parse_args().rounds
    mlflow = subprocess.run([ROOT / ".ci" / "mlflow-env"], check=True, capture_output=True, text=True)
    mlflow_python = mlflow.stdout.strip().splitlines()[-1]
    with tempfile.TemporaryDirectory(prefix="th-bench-cli-") as home, stack() as hub:
        run = hub.submit(hub.snapshot({"train.py": "pass"}), "train.py")
        env = {"HOME": home, "PATH": os.environ["PATH"], "TRAINHUB_URL": hub.url, "TRAINHUB_TOKEN": hub.token}
        # As the script that pip makes of the entry point.
        trainhub = [sys.executable, "-c", "from trainhub_cli.__main__ import main; main()"]
        commands = {
            "python -c pass": [sys.executable, "-c", "pass"],
            "trainhub --help": [*trainhub, "--help"],
            "trainhub ls": [*trainhub, "ls"],
        }
        assert run
        figures = measure(commands, env, rounds)
    mlflow_help = {"mlflow --help": [mlflow_python, "-m", "mlflow", "--help"]}
    figures |= measure(mlflow_help, {"PATH": os.environ["PATH"]}, MLFLOW_ROUNDS)
    for name, milliseconds in figures.items():
        print(f"{name:<16} {milliseconds:7.0f} ms of CPU (median)")
    nothing, limits = figures["python -c pass"], Limits()
    limits.at_most("trainhub --help to python -c pass", figures["trainhub --help"] / nothing, MAX_HELP)
    limits.at_most("trainhub ls to python -c pass", figures["trainhub ls"] / nothing, MAX_LIST)
    share = figures["trainhub --help"] / figures["mlflow --help"]
    limits.at_most("trainhub --help to mlflow --help", share, MAX_SHARE_OF_MLFLOW)
    return limits.exit_code()


def measure(commands: Mapping[str, Sequence[str]], env: Mapping[str, str], rounds: int) -> dict[str, float]:
    """Returns the CPU time of each command in milliseconds: the median of rounds in which all take turns,
    after one that compiles their modules."""
    times: dict[str, list[float]] = {name: [] for name in commands}
    for number in range(rounds + 1):
        for name, argv in commands.items():
            used = cpu_ms(argv, env)
            if number:
                times[name].append(used)
    return {name: median(values) for name, values in times.items()}


def cpu_ms(argv: Sequence[str], env: Mapping[str, str]) -> float:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    with Path(os.devnull).open("w") as nowhere:
        subprocess.run(argv, cwd=ROOT, env=dict(env), stdout=nowhere, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return 1000 * (after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime)


if __name__ == "__main__":
    sys.exit(main())
