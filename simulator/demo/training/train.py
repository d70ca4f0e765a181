"""A small data-parallel training in numpy alone: every rank has its share of the data, and gradients are
averaged over sockets.

It sleeps between steps, so that many runs fit on a small machine. Rank 0 logs metrics and params to the run
by MLflow's protocol, without MLflow's client.
"""

from __future__ import annotations

import argparse
import json
import os
import socket
import time
import urllib.request
from collections.abc import Mapping
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float32]
FEATURES, HIDDEN, CLASSES, SAMPLES = 32, 64, 8, 512
RANK, WORLD = int(os.environ.get("RANK", "0")), int(os.environ.get("WORLD_SIZE", "1"))
# How long ranks look for each other at the start. A training that has begun waits for as long as its run
# may last.
PATIENCE_S = 60
LOG_EVERY = 5


class Ring:
    """Rank 0 receives from all ranks and answers all: enough for a few ranks and a few kilobytes."""

    def __init__(self) -> None:
        self.lines: list[socket.socket] = []
        if WORLD == 1:
            return
        address = (os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"]))
        self.lines = _accepted(address) if RANK == 0 else [_connected(address)]

    def mean(self, numbers: Array) -> Array:
        """Returns the mean of the arrays of all ranks."""
        if RANK == 0:
            total = numbers.copy()
            for line in self.lines:
                total += _received(line, numbers)
            total /= WORLD
            for line in self.lines:
                line.sendall(total.tobytes())
            return total
        self.lines[0].sendall(numbers.tobytes())
        return _received(self.lines[0], numbers)


def _accepted(address: tuple[str, int]) -> list[socket.socket]:
    with socket.create_server(("", address[1])) as server:
        server.settimeout(PATIENCE_S)
        lines = [server.accept()[0] for _ in range(WORLD - 1)]
    for line in lines:
        line.settimeout(None)
    return lines


def _connected(address: tuple[str, int]) -> socket.socket:
    # Ranks start in any order: rank 0 may not listen yet.
    deadline = time.monotonic() + PATIENCE_S
    while True:
        try:
            line = socket.create_connection(address, timeout=PATIENCE_S)
            line.settimeout(None)
            return line
        except OSError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.1)


def _received(line: socket.socket, like: Array) -> Array:
    data = bytearray()
    while len(data) < like.nbytes:
        part = line.recv(like.nbytes - len(data))
        if not part:
            raise ConnectionError("a rank has gone")
        data += part
    return np.frombuffer(bytes(data), dtype=np.float32).reshape(like.shape)


class RunLog:
    """Logs to the run that TrainHub started this process for; elsewhere to nothing."""

    def __init__(self) -> None:
        self.url = os.environ.get("MLFLOW_TRACKING_URI", "") if RANK == 0 else ""

    def metrics(self, step: int, values: Mapping[str, float]) -> None:
        now_ms = int(time.time() * 1000)
        self._send(
            metrics=[
                # JSON has no number for what is not finite.
                {
                    "key": key,
                    "value": value if np.isfinite(value) else "NaN",
                    "timestamp": now_ms,
                    "step": step,
                }
                for key, value in values.items()
            ]
        )

    def params(self, values: Mapping[str, object]) -> None:
        self._send(params=[{"key": key, "value": str(value)} for key, value in values.items()])

    def _send(self, **entries: object) -> None:
        if not self.url:
            return
        body = json.dumps({"run_id": os.environ["MLFLOW_RUN_ID"], **entries}).encode()
        token = os.environ.get("MLFLOW_TRACKING_TOKEN", "")
        headers = {"Content-Type": "application/json", "Authorization": f"Bearer {token}"}
        request = urllib.request.Request(f"{self.url}/api/2.0/mlflow/runs/log-batch", body, headers)
        try:
            urllib.request.urlopen(request, timeout=10).close()
        except OSError as error:
            print(f"not logged: {error}", flush=True)


def share(seed: int) -> tuple[Array, NDArray[np.int64]]:
    """Returns features and labels of this rank's part of the data."""
    # The same seed on every rank gives the same classes; the samples differ by rank.
    shared = np.random.default_rng(7)
    centres = shared.normal(0, 1.0, (CLASSES, FEATURES))
    own = np.random.default_rng(100 + RANK + 1000 * seed)
    labels = own.integers(0, CLASSES, SAMPLES)
    return (centres[labels] + own.normal(0, 2.2, (SAMPLES, FEATURES))).astype(np.float32), labels


def step(weights: Array, features: Array, labels: NDArray[np.int64]) -> tuple[float, float, Array]:
    """Loss, share of right answers, and the gradient of a network with one hidden layer."""
    first, second = (
        weights[: FEATURES * HIDDEN].reshape(FEATURES, HIDDEN),
        weights[FEATURES * HIDDEN :].reshape(HIDDEN, CLASSES),
    )
    hidden = np.maximum(features @ first, 0)
    scores = hidden @ second
    # Subtracting the maximum keeps exp within float32 and does not change the softmax.
    chances = np.exp(scores - scores.max(axis=1, keepdims=True))
    chances /= chances.sum(axis=1, keepdims=True)
    rows = np.arange(len(labels))
    loss, right = (
        float(-np.log(chances[rows, labels] + 1e-9).mean()),
        float((chances.argmax(axis=1) == labels).mean()),
    )
    chances[rows, labels] -= 1
    chances /= len(labels)
    back = chances @ second.T
    back[hidden <= 0] = 0
    return (
        loss,
        right,
        np.concatenate([(features.T @ back).ravel(), (hidden.T @ chances).ravel()]).astype(np.float32),
    )


def rest_of(arguments: argparse.Namespace) -> float:
    """Returns the seconds between two steps: a GPU that heat slows down takes longer for its part."""
    is_slow = arguments.slow_gpu and arguments.slow_gpu in os.environ.get("CUDA_VISIBLE_DEVICES", "")
    return float(arguments.rest) * (3 if is_slow else 1)


def train(arguments: argparse.Namespace, log: RunLog) -> Array:
    """Returns the trained weights."""
    ring, (features, labels) = Ring(), share(arguments.seed)
    log.params(
        {
            "learning_rate": arguments.learning_rate,
            "batch_size": arguments.batch_size,
            "seed": arguments.seed,
            "ranks": WORLD,
        }
    )
    # Every rank starts with the same weights, and equal gradients keep them equal: none are ever exchanged.
    start, order = np.random.default_rng(1), np.random.default_rng(arguments.seed)
    weights = start.normal(0, 0.1, FEATURES * HIDDEN + HIDDEN * CLASSES).astype(np.float32)
    speed, rest = np.zeros_like(weights), rest_of(arguments)
    logged_at = time.monotonic()
    for number in range(1, arguments.steps + 1):
        batch = order.choice(SAMPLES, min(arguments.batch_size, SAMPLES), replace=False)
        loss, right, gradient = step(weights, features[batch], labels[batch])
        if number == arguments.breaks_at and RANK == WORLD - 1:
            raise RuntimeError("CUDA out of memory. Tried to allocate 12.50 GiB (simulated)")
        if number == arguments.hangs_at and RANK == WORLD - 2:
            time.sleep(3600)
        rate = arguments.learning_rate * min(1.0, number / 10)
        speed = 0.9 * speed + ring.mean(gradient)
        weights = weights - rate * speed
        if number == 1 or number % LOG_EVERY == 0:
            print(f"step {number}/{arguments.steps}  loss {loss:.4f}  accuracy {right:.3f}", flush=True)
            now, steps = time.monotonic(), 1 if number == 1 else LOG_EVERY
            per_s = steps * len(batch) * WORLD / max(now - logged_at, 1e-3)
            logged_at = now
            log.metrics(number, {"loss": loss, "accuracy": right, "lr": rate, "samples_per_s": per_s})
        time.sleep(rest)
    return weights


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=120)
    parser.add_argument("--learning-rate", type=float, default=0.02)
    parser.add_argument("--batch-size", type=int, default=128)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--rest", type=float, default=0.25, help="seconds between two steps")
    parser.add_argument(
        "--breaks-at", type=int, default=0, help="the step at which the last rank fails; 0: none does"
    )
    parser.add_argument(
        "--hangs-at", type=int, default=0, help="the step at which the last rank but one stops; 0: none does"
    )
    parser.add_argument("--slow-gpu", default="", help="UUID of a GPU that takes three times as long")
    arguments = parser.parse_args()
    # All ranks of the demo share the machine with the hub, which must stay responsive.
    os.nice(10)
    # Too high a learning rate overflows; the loss tells so, once.
    np.seterr(all="ignore")
    gpus = os.environ.get("CUDA_VISIBLE_DEVICES", "") or "no GPU"
    print(f"rank {RANK} of {WORLD} on {socket.gethostname()}, {gpus}", flush=True)
    weights = train(arguments, RunLog())
    if RANK == 0:
        Path("outputs").mkdir(exist_ok=True)
        np.savez("outputs/model.npz", weights=weights)
        print("kept outputs/model.npz", flush=True)


if __name__ == "__main__":
    main()
