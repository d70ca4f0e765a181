"""`python -m bench.comparison CHECKOUT [--pairs 15]`: this checkout beside an older one, which has a `.venv`
of its own.

Ends with an error where the 95 % interval of a ratio reaches the limit of 1.10.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections import defaultdict
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path

from bench.comparison.ratios import ratio
from bench.support.stack import ROOT

# Program -> its measurements, in their order. The nodes of `ingest` report until the end, so it is last.
PROGRAMS = {
    "subject.py": ("launch", "log", "artifact", "download", "idle", "ingest"),
    "answer_times.py": ("lines", "search", "charts", "tracking", "runs", "sockets"),
}
MEASUREMENTS = tuple(name for names in PROGRAMS.values() for name in names)
# Seconds of a core, which both hubs may take at the same time.
TOGETHER = ("idle", "ingest")
LIMIT = 1.10
DEFAULT_PAIRS = 15
FILE_MB = 200


class Results:
    """What was measured of one checkout: name -> seconds in the order of the pairs."""

    def __init__(self, checkout: Path) -> None:
        self.checkout = checkout
        self.seconds: defaultdict[str, list[float]] = defaultdict(list)

    def add(self, measured: Mapping[str, float]) -> None:
        for what, seconds in measured.items():
            self.seconds[what].append(seconds)


class Side:
    """One of the two checkouts, with its hub running. `program`: the file here that measures it."""

    def __init__(self, checkout: Path, program: str, mlflow_python: str, file: Path) -> None:
        python = checkout / ".venv" / "bin" / "python"
        # Given as text, so that its imports come from the current folder, the checkout, and not from beside
        # this file.
        text = Path(__file__).with_name(program).read_text()
        argv = [str(python), "-c", text, mlflow_python, str(file)]
        self._process = subprocess.Popen(
            argv, cwd=checkout, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        while self._line() != "ready":
            pass

    def begin(self, name: str) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(f"{name}\n")
        self._process.stdin.flush()

    def finish(self) -> dict[str, float]:
        results: dict[str, float] = json.loads(self._line())
        return results

    def end(self) -> None:
        self._process.communicate()

    def _line(self) -> str:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise RuntimeError(f"the measurement ended with {self._process.wait()}; see its error above")
        return line.strip()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("checkout", type=Path, help="the older one; run `make .venv/ready-dev` there first")
    parser.add_argument("--pairs", type=int, default=DEFAULT_PAIRS)
    parser.add_argument("--only", choices=MEASUREMENTS, action="append", help="may be given more than once")
    options = parser.parse_args()
    mlflow = subprocess.run(
        [ROOT / ".ci" / "mlflow-env"], check=True, capture_output=True, text=True
    ).stdout.split()[-1]
    old, new = Results(options.checkout.resolve()), Results(ROOT)
    with tempfile.TemporaryDirectory(prefix="th-bench-compare-") as folder:
        file = Path(folder, "weights.bin")
        file.write_bytes(os.urandom(FILE_MB * 1_000_000))
        for pair in range(options.pairs):
            checkouts = (old, new) if pair % 2 else (new, old)
            for program, names in PROGRAMS.items():
                chosen = [name for name in names if name in (options.only or names)]
                if chosen:
                    measure_pair(checkouts, program, chosen, mlflow, file)
            print(f"pair {pair + 1} of {options.pairs} measured", file=sys.stderr, flush=True)
    report(old, new, options.pairs)


def measure_pair(
    checkouts: Sequence[Results], program: str, names: Sequence[str], mlflow_python: str, file: Path
) -> None:
    """Measures both checkouts once, in this order, in hubs that are started for it: the times of two hubs of
    the same code differ by several percent for as long as they run."""
    with ExitStack() as ending:
        sides = [(Side(results.checkout, program, mlflow_python, file), results) for results in checkouts]
        for side, _ in sides:
            ending.callback(side.end)
        for name in names:
            if name in TOGETHER:
                for side, _ in sides:
                    side.begin(name)
                for side, results in sides:
                    results.add(side.finish())
                continue
            # What is done for the first time takes longer, so it does not count.
            for is_counted in (False, True):
                for side, results in sides:
                    side.begin(name)
                    measured = side.finish()
                    if is_counted:
                        results.add(measured)


def report(old: Results, new: Results, pairs: int) -> None:
    print(f"new / old of {pairs} pairs, each time in another order:")
    slower = []
    for what, before in old.seconds.items():
        change = ratio(before, new.seconds[what])
        print(f"{what:<52} {change}")
        if change.high >= LIMIT:
            slower.append(what)
    if slower:
        sys.exit(f"not shown to be below {LIMIT:.2f}: {', '.join(slower)}")


if __name__ == "__main__":
    main()
