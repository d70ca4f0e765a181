"""Run by an interpreter with MLflow: what its unmodified client gets out of the server at
MLFLOW_TRACKING_URI. Prints JSON.

python -m bench.support.mlflow_client {single,batch,search,curve} ...
"""

from __future__ import annotations

import argparse
import json
import logging
import multiprocessing
import socket
import statistics
import time
from typing import Any

from mlflow import MlflowClient
from mlflow.entities import Metric

from bench.support.mlflow_wire import ORDER, SEARCHED

logging.disable(logging.WARNING)


def acknowledge_at_once() -> None:
    """TCP_QUICKACK on every read of the client: a server whose answers leave in several small writes waits
    for the client's late acknowledgement, which says nothing about how much work it does."""
    plain = socket.socket.recv_into

    def recv_into(self: socket.socket, *args: Any, **kwargs: Any) -> int:
        if self.family == socket.AF_INET:
            self.setsockopt(socket.IPPROTO_TCP, socket.TCP_QUICKACK, 1)
        return plain(self, *args, **kwargs)

    socket.socket.recv_into = recv_into  # type: ignore[assignment,method-assign]


def a_run(client: MlflowClient, name: str = "bench") -> str:
    existing = client.get_experiment_by_name(name)
    experiment = existing.experiment_id if existing else client.create_experiment(name)
    return str(client.create_run(experiment).info.run_id)


def single(count: int) -> float:
    """log_metric calls a second, one at a time."""
    client = MlflowClient()
    run = a_run(client)
    for step in range(10):
        client.log_metric(run, "warm", 0.0, step=step)
    started = time.perf_counter()
    for step in range(count):
        client.log_metric(run, "loss", 1.0 / (step + 1), step=step)
    return count / (time.perf_counter() - started)


def batch(count: int, keys: int) -> dict[str, float]:
    """Metrics a second in batches of 1,000 of so many curves; what the client alone needs for them."""
    client = MlflowClient()
    run = a_run(client)
    now = int(time.time() * 1000)
    batches = [
        [
            Metric(f"m{place % keys}", place / 7, now + place, number * (1000 // keys) + place // keys)
            for place in range(1000)
        ]
        for number in range(count + 1)
    ]
    client.log_batch(run, batches[0])
    started = time.perf_counter()
    for metrics in batches[1:]:
        client.log_batch(run, metrics)
    return {"metrics_s": 1000 * count / (time.perf_counter() - started)}


def writer(count: int, fair: bool, failed: Any) -> None:
    if fair:
        acknowledge_at_once()
    try:
        single(count)
    except Exception as error:
        failed.put(repr(error)[:200])


def writers(count: int, fair: bool) -> dict[str, Any]:
    context = multiprocessing.get_context("spawn")
    failed: Any = context.Queue()
    processes = [context.Process(target=writer, args=(count, fair, failed)) for _ in range(4)]
    started = time.perf_counter()
    for process in processes:
        process.start()
    for process in processes:
        process.join()
    errors = []
    while not failed.empty():
        errors.append(failed.get())
    return {"seconds": time.perf_counter() - started, "errors": errors}


def search(experiment: str, rounds: int, results: int) -> dict[str, Any]:
    client = MlflowClient()
    existing = client.get_experiment_by_name(experiment)
    took, runs = [], []
    for _ in range(rounds):
        started = time.perf_counter()
        runs = client.search_runs([existing.experiment_id], SEARCHED, order_by=ORDER, max_results=results)
        took.append(time.perf_counter() - started)
    return {"median_s": statistics.median(took), "found": len(runs)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=("single", "batch", "writers", "search"))
    parser.add_argument("--count", type=int, default=300)
    parser.add_argument("--keys", type=int, default=10)
    parser.add_argument("--experiment", default="bench-0")
    parser.add_argument("--results", type=int, default=100)
    parser.add_argument("--quickack", action="store_true")
    told = parser.parse_args()
    if told.quickack:
        acknowledge_at_once()
    if told.what == "single":
        answer: Any = {"calls_s": single(told.count)}
    elif told.what == "batch":
        answer = batch(told.count, told.keys)
    elif told.what == "writers":
        answer = writers(told.count, told.quickack)
    else:
        answer = search(told.experiment, told.count, told.results)
    print(json.dumps(answer))


if __name__ == "__main__":
    main()
