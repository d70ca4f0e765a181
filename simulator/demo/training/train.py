"""A small data-parallel training in numpy alone: every rank has its share of the data, and gradients are
averaged over sockets.

It sleeps between steps, so that many runs fit on a small machine.
"""

from __future__ import annotations

import argparse
import os
import socket
import time
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float32]
FEATURES, HIDDEN, CLASSES, SAMPLES = 32, 64, 8, 512
RANK, WORLD = int(os.environ.get("RANK", "0")), int(os.environ.get("WORLD_SIZE", "1"))
PATIENCE_S = 60


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
        line.settimeout(PATIENCE_S)
    return lines


def _connected(address: tuple[str, int]) -> socket.socket:
    # Ranks start in any order: rank 0 may not listen yet.
    deadline = time.monotonic() + PATIENCE_S
    while True:
        try:
            return socket.create_connection(address, timeout=PATIENCE_S)
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


def share() -> tuple[Array, NDArray[np.int64]]:
    """Returns features and labels of this rank's part of the data."""
    # The same seed on every rank gives the same classes; the samples differ by rank.
    shared = np.random.default_rng(7)
    centres = shared.normal(0, 1.6, (CLASSES, FEATURES))
    own = np.random.default_rng(100 + RANK)
    labels = own.integers(0, CLASSES, SAMPLES)
    return (centres[labels] + own.normal(0, 1.9, (SAMPLES, FEATURES))).astype(np.float32), labels


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


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=120)
    parser.add_argument("--rest", type=float, default=0.25, help="seconds between two steps")
    parser.add_argument(
        "--breaks-at", type=int, default=0, help="the step at which the last rank fails; 0: none does"
    )
    arguments = parser.parse_args()
    # All ranks of the demo share the machine with the hub, which must stay responsive.
    os.nice(10)
    gpus = os.environ.get("CUDA_VISIBLE_DEVICES", "") or "no GPU"
    print(f"rank {RANK} of {WORLD} on {socket.gethostname()}, {gpus}", flush=True)
    ring, (features, labels) = Ring(), share()
    # Every rank starts with the same weights, and equal gradients keep them equal: none are ever exchanged.
    start = np.random.default_rng(1)
    weights = start.normal(0, 0.1, FEATURES * HIDDEN + HIDDEN * CLASSES).astype(np.float32)
    speed = np.zeros_like(weights)
    for number in range(1, arguments.steps + 1):
        loss, right, gradient = step(weights, features, labels)
        if number == arguments.breaks_at and RANK == WORLD - 1:
            raise RuntimeError("CUDA out of memory. Tried to allocate 12.50 GiB (simulated)")
        speed = 0.9 * speed + ring.mean(gradient)
        weights = weights - 0.05 * speed
        if number == 1 or number % 5 == 0:
            print(f"step {number}/{arguments.steps}  loss {loss:.4f}  accuracy {right:.3f}", flush=True)
        time.sleep(arguments.rest)
    if RANK == 0:
        Path("outputs").mkdir(exist_ok=True)
        np.savez("outputs/model.npz", weights=weights)
        print("kept outputs/model.npz", flush=True)


if __name__ == "__main__":
    main()
