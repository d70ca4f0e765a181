"""Data parallel training with nothing but NumPy and MPI.

Every process computes the gradient of its own share of the handwritten digits; Allreduce sums the
gradients, each divides by the number of processes, and so all take the same step. Horovod and
DistributedDataParallel do the same internally.
"""

import json
import pathlib
import time
from argparse import ArgumentParser

import numpy as np
from mpi4py import MPI
from sklearn.datasets import load_digits

parser = ArgumentParser()
parser.add_argument("--epochs", type=int, default=60)
parser.add_argument("--batch-size", type=int, default=32, help="images per process and step")
parser.add_argument("--hidden", type=int, default=128)
parser.add_argument("--learning-rate", type=float, default=0.1)
args = parser.parse_args()

comm = MPI.COMM_WORLD
rank, size = comm.Get_rank(), comm.Get_size()
print(f"rank {rank} of {size} on {MPI.Get_processor_name()}", flush=True)

digits = load_digits()
images, labels = digits.data / 16.0, digits.target
order = np.random.default_rng(0).permutation(len(labels))  # the same in every process
held_out, used = order[:360], order[360:]
# Equal shares: a process with more steps than the others would wait in Allreduce forever.
mine = used[: len(used) // size * size][rank::size]
print(f"rank {rank} reads {len(mine)} of {len(used)} images", flush=True)

# All start from the weights of rank 0.
random = np.random.default_rng(1)
weights = [
    random.normal(0, np.sqrt(2 / 64), (64, args.hidden)),
    np.zeros(args.hidden),
    random.normal(0, np.sqrt(2 / args.hidden), (args.hidden, 10)),
    np.zeros(10),
]
for array in weights:
    comm.Bcast(array, root=0)


def probabilities(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Returns the hidden layer and the softmax of the output layer."""
    w1, b1, w2, b2 = weights
    hidden = np.maximum(x @ w1 + b1, 0)
    scores = hidden @ w2 + b2
    scores -= scores.max(axis=1, keepdims=True)
    exponents = np.exp(scores)
    return hidden, exponents / exponents.sum(axis=1, keepdims=True)


def gradients(x: np.ndarray, y: np.ndarray) -> tuple[float, list[np.ndarray]]:
    """Returns the cross-entropy of one batch and its gradient for every weight."""
    hidden, probability = probabilities(x)
    loss = -np.log(probability[np.arange(len(y)), y] + 1e-12).mean()
    delta = probability.copy()
    delta[np.arange(len(y)), y] -= 1
    delta /= len(y)
    below = (delta @ weights[2].T) * (hidden > 0)
    return float(loss), [x.T @ below, below.sum(0), hidden.T @ delta, delta.sum(0)]


shuffle = np.random.default_rng(100 + rank)
history = []
for epoch in range(1, args.epochs + 1):
    started, losses = time.monotonic(), []
    shuffle.shuffle(mine)
    for start in range(0, len(mine), args.batch_size):
        batch = mine[start : start + args.batch_size]
        loss, own = gradients(images[batch], labels[batch])
        losses.append(loss)
        for weight, gradient in zip(weights, own, strict=True):
            summed = np.empty_like(gradient)
            comm.Allreduce(gradient, summed, op=MPI.SUM)
            np.subtract(weight, args.learning_rate * summed / size, out=weight)

    loss = comm.allreduce(float(np.mean(losses)), op=MPI.SUM) / size
    if rank == 0:
        accuracy = float((probabilities(images[held_out])[1].argmax(1) == labels[held_out]).mean())
        history.append({"epoch": epoch, "loss": loss, "accuracy": accuracy})
    if epoch % 5 == 0 or epoch == 1:
        shown = f"  accuracy {history[-1]['accuracy']:.1%}" if rank == 0 else ""
        print(
            f"epoch {epoch:>2}/{args.epochs}  loss {loss:.4f}{shown}  {time.monotonic() - started:.2f} s",
            flush=True,
        )

# Every process must have arrived at the same weights; a difference would mean a broken reduction.
checksum = sum(float(weight.sum()) for weight in weights)
assert np.allclose(comm.allgather(checksum), checksum), "the processes disagree about the weights"
if rank == 0:
    outputs = pathlib.Path("outputs")
    outputs.mkdir(exist_ok=True)
    np.savez(outputs / "model.npz", w1=weights[0], b1=weights[1], w2=weights[2], b2=weights[3])
    (outputs / "history.json").write_text(json.dumps(history, indent=1))
    print("Wrote outputs/model.npz", flush=True)
