"""Logging, search and curves beside MLflow's own server: the same unmodified client, the same kind of
database, the same run.

MLflow's answers leave in several small writes, and its client acknowledges late: each single call loses some
45 ms to that. The fair figure is the one with TCP_QUICKACK on the client's socket; both are printed.
"(nothing)" is a server that does
nothing: as fast as the client can be.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx

from bench.support.limits import Limits
from bench.support.mlflow_wire import Wire
from bench.support.postgresql import postgresql
from bench.support.stack import ROOT, Stack, free_port, stack

PIXELS = 800
MIN_RATIO = 2.0
SAMPLED = "/ajax-api/2.0/mlflow/metrics/get-history-bulk-interval"
QUIET = {"MLFLOW_DISABLE_TELEMETRY": "true"}
ROUNDS = 7


@dataclass(frozen=True)
class Side:
    """One server: how its client reaches it, how its database is filled, and where it samples a curve."""

    name: str
    url: str
    python: str
    token: str = ""
    fill: Callable[[str, int], str] | None = None
    curve: Callable[[str], str] = str

    def client(self, *arguments: str) -> Any:
        env = {**os.environ, **QUIET, "MLFLOW_TRACKING_URI": self.url, "MLFLOW_TRACKING_TOKEN": self.token}
        done = subprocess.run(
            [self.python, "-m", "bench.support.mlflow_client", *arguments],
            cwd=ROOT,
            env=env,
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            raise RuntimeError(f"{self.name}: {arguments}: {done.stderr[-800:]}")
        return json.loads(done.stdout.splitlines()[-1])


@contextmanager
def trainhub(python: str, database: str) -> Iterator[Side]:
    settings = {"DATABASE_URL": database} if database else {}
    with stack(**settings) as hub:
        yield Side(
            "TrainHub",
            hub.url,
            python,
            hub.token,
            lambda what, count: _fill(hub, what, count),
            lambda run: f"/api/v1/runs/{run}/metrics/series/?keys=loss&pixels={PIXELS}",
        )


@contextmanager
def mlflow(python: str, database: str) -> Iterator[Side]:
    with tempfile.TemporaryDirectory(prefix="th-bench-ml-") as folder:
        store = (database or f"sqlite:///{folder}/mlflow.sqlite3").replace(
            "postgres://", "postgresql+psycopg2://"
        )
        port, env = free_port(), {**os.environ, **QUIET}
        argv = [
            python,
            "-m",
            "mlflow",
            "server",
            "--backend-store-uri",
            store,
            "--artifacts-destination",
            f"{folder}/artifacts",
            "--host",
            "127.0.0.1",
            "--port",
            str(port),
        ]
        with Path(folder, "log").open("wb") as log:
            server = subprocess.Popen(
                argv, cwd=folder, env=env, stdout=log, stderr=log, start_new_session=True
            )
        try:
            url = f"http://127.0.0.1:{port}"
            _await(f"{url}/health", server)

            def fill(what: str, count: int) -> str:
                return _output([python, "-m", "bench.support.mlflow_filler", store, what, str(count)], env)

            def curve(run: str) -> str:
                return f"{SAMPLED}?run_ids={run}&metric_key=loss&max_results={PIXELS}"

            yield Side("MLflow", url, python, "", fill, curve)
        finally:
            os.killpg(server.pid, signal.SIGTERM)
            server.wait(30)


@contextmanager
def nothing(python: str) -> Iterator[Side]:
    port = free_port()
    server = subprocess.Popen([sys.executable, "-m", "bench.support.null_server", str(port)], cwd=ROOT)
    try:
        url = f"http://127.0.0.1:{port}"
        _await(url, server)
        yield Side("(nothing)", url, python)
    finally:
        server.terminate()
        server.wait(10)


def say(side: Side, what: str, figure: str) -> None:
    print(f"{side.name:<9} {what:<44} {figure}", flush=True)


def logging(side: Side) -> dict[str, float]:
    """Returns the rates that are compared: per second, with the client."""
    rates = {}
    for fair in ((), ("--quickack",)):
        told = side.client("single", *fair)
        say(
            side,
            "log_metric, one at a time" + (", TCP_QUICKACK" if fair else ""),
            f"{told['calls_s']:.0f} calls/s",
        )
        rates["log_metric"] = told["calls_s"]
    for keys in (10, 1000):
        told = side.client("batch", "--count", "30", "--keys", str(keys), "--quickack")
        say(side, f"log_batch of 1,000, {keys} curves", f"{told['metrics_s']:.0f} metrics/s")
        rates[f"log_batch, {keys} curves"] = told["metrics_s"]
    if side.fill is None:
        return rates
    told = side.client("writers", "--count", "200", "--quickack")
    errors = f"{len(told['errors'])} errors {told['errors'][:1] or ''}"
    say(side, "four writers at once, 200 calls each", f"{told['seconds']:.1f} s, {errors}")
    wire = Wire(side.url, side.token)
    say(side, "log_metric, the same bytes without the client", f"{wire.single(500):.0f} calls/s")
    for keys in (10, 1000):
        figure = f"{wire.batch(50, keys):.0f} metrics/s"
        say(side, f"log_batch of 1,000, {keys} curves, without it", figure)
    return rates


def searching(side: Side, count: int, total: int) -> None:
    assert side.fill is not None
    side.fill("runs", count)
    told = side.client("search", "--count", str(ROUNDS), "--quickack")
    seconds, found = Wire(side.url, side.token).search("bench-0", ROUNDS)
    figure = f"{seconds * 1e3:.0f} ms, with its client {told['median_s'] * 1e3:.0f} ms; {found} found"
    say(side, f"search_runs over {total:,} runs", figure)


def drawing(side: Side, count: int) -> None:
    assert side.fill is not None
    run = side.fill("curve", count)
    headers = {"Authorization": f"Bearer {side.token}"} if side.token else {}
    with httpx.Client(base_url=side.url, headers=headers, timeout=120) as client:
        took, size = [], 0
        for _ in range(ROUNDS):
            begun = time.perf_counter()
            answer = client.get(side.curve(run)).raise_for_status()
            took.append(time.perf_counter() - begun)
            size = len(answer.content)
    say(
        side, f"a curve of {count:,} points", f"{statistics.median(took) * 1e3:.0f} ms, {size / 1024:.0f} KiB"
    )


def measure(side: Side, options: argparse.Namespace) -> dict[str, float]:
    rates = logging(side)
    for count in options.curves:
        if side.name == "TrainHub" or count <= options.mlflow_most:
            drawing(side, count)
    total = 0
    for count in options.runs:
        total += count
        if side.name == "TrainHub" or total <= options.mlflow_most:
            searching(side, count, total)
    return rates


SIDES = (("mlflow", mlflow), ("trainhub", trainhub))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--databases", nargs="+", choices=("sqlite", "postgresql"), default=["sqlite", "postgresql"]
    )
    parser.add_argument("--curves", nargs="+", type=int, default=[100_000, 1_000_000])
    parser.add_argument(
        "--runs", nargs="+", type=int, default=[10_000, 90_000], help="added one after the other"
    )
    parser.add_argument(
        "--mlflow-most", type=int, default=100_000, help="larger ones are not put into MLflow's database"
    )
    parser.add_argument("--only", choices=("trainhub", "mlflow"))
    options = parser.parse_args()
    python = _output([str(ROOT / ".ci" / "mlflow-env")], dict(os.environ))
    with nothing(python) as server:
        logging(server)
    limits = Limits()
    for kind in options.databases:
        rates: dict[str, dict[str, float]] = {}
        for name, side in SIDES:
            if options.only in (None, name):
                print(f"-- {kind}", flush=True)
                rates[name] = _on(kind, python, side, options)
        if len(rates) == len(SIDES):
            for what, ours in rates["trainhub"].items():
                limits.at_least(f"{what} to MLflow's server, {kind}", ours / rates["mlflow"][what], MIN_RATIO)
    return limits.exit_code()


def _on(kind: str, python: str, side: Any, options: argparse.Namespace) -> dict[str, float]:
    if kind == "sqlite":
        with side(python, "") as running:
            return measure(running, options)
    with postgresql() as database, side(python, database.url) as running:
        return measure(running, options)


def _fill(hub: Stack, what: str, count: int) -> str:
    env = {**os.environ, **hub.settings, "DATA_DIR": str(hub.data)}
    return _output([sys.executable, "-m", "bench.support.tracking_filler", what, str(count)], env)


def _output(argv: list[str], env: dict[str, str]) -> str:
    done = subprocess.run(argv, cwd=ROOT, env=env, stdout=subprocess.PIPE, text=True, check=True)
    return done.stdout.strip().rpartition("\n")[2]


def _await(url: str, server: subprocess.Popen[bytes]) -> None:
    for _ in range(600):
        if server.poll() is not None:
            raise RuntimeError("the MLflow server did not start")
        try:
            if httpx.get(url, timeout=2).status_code == 200:
                return
        except httpx.TransportError:
            time.sleep(0.1)
    raise RuntimeError("the MLflow server did not answer within a minute")


if __name__ == "__main__":
    sys.exit(main())
