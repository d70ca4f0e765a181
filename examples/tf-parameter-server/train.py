"""Asynchronous training with parameter servers in TensorFlow 2.

One chief assigns steps, workers compute them, and parameter servers hold the variables. TrainHub sets
TF_CONFIG for every task and adds the chief. Workers and servers never end by themselves: when the
chief has finished, TrainHub ends them, and the run is completed.
"""

import os

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

import argparse
import json
import pathlib

import numpy as np
import tensorflow as tf
from sklearn.datasets import load_digits

HELD_OUT, HIDDEN = 360, 128

parser = argparse.ArgumentParser()
parser.add_argument("--epochs", type=int, default=5)
parser.add_argument("--batch-size", type=int, default=32, help="images per step of one worker")
parser.add_argument("--learning-rate", type=float, default=0.1)
args = parser.parse_args()

resolver = tf.distribute.cluster_resolver.TFConfigClusterResolver()
cluster = resolver.cluster_spec().as_dict()
if resolver.task_type in ("worker", "ps"):
    server = tf.distribute.Server(
        resolver.cluster_spec(), resolver.task_type, resolver.task_id, protocol="grpc"
    )
    print(
        f"{resolver.task_type} {resolver.task_id} of {len(cluster[resolver.task_type])} serves at "
        f"{server.target}",
        flush=True,
    )
    server.join()

print(
    f"chief of {len(cluster['worker'])} workers and {len(cluster['ps'])} servers, TensorFlow "
    f"{tf.__version__}",
    flush=True,
)
strategy = tf.distribute.ParameterServerStrategy(resolver)
coordinator = tf.distribute.coordinator.ClusterCoordinator(strategy)

digits = load_digits()
images, labels = (digits.data / 16.0).astype("float32"), digits.target.astype("int64")
order = np.random.default_rng(0).permutation(len(labels))
held_out, used = order[:HELD_OUT], order[HELD_OUT:]
steps = len(used) // args.batch_size

with strategy.scope():  # the variables are distributed over the servers
    first = tf.Variable(tf.random.stateless_normal((64, HIDDEN), seed=(0, 0), stddev=(2 / 64) ** 0.5))
    second = tf.Variable(tf.random.stateless_normal((HIDDEN, 10), seed=(0, 1), stddev=(2 / HIDDEN) ** 0.5))
variables = (first, second)
print(f"variables on {', '.join(sorted({variable.device for variable in variables}))}", flush=True)


def scores(batch):
    return tf.nn.relu(batch @ first) @ second


@tf.function
def train_step(iterator):
    batch, targets = next(iterator)
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(
            tf.nn.sparse_softmax_cross_entropy_with_logits(labels=targets, logits=scores(batch))
        )
    for variable, gradient in zip(variables, tape.gradient(loss, variables), strict=True):
        variable.assign_sub(args.learning_rate * gradient)
    return loss


def make_dataset():
    data = tf.data.Dataset.from_tensor_slices((images[used], labels[used]))
    return data.shuffle(len(used)).repeat().batch(args.batch_size)


batches = iter(coordinator.create_per_worker_dataset(tf.function(make_dataset)))
history = []
for epoch in range(1, args.epochs + 1):
    losses = [coordinator.schedule(train_step, args=(batches,)) for _ in range(steps)]
    coordinator.join()
    loss = float(np.mean([value.fetch() for value in losses]))
    accuracy = float(np.mean(scores(images[held_out]).numpy().argmax(1) == labels[held_out]))
    history.append({"epoch": epoch, "loss": loss, "accuracy": accuracy})
    print(f"epoch {epoch}/{args.epochs}  loss {loss:.4f}  accuracy {accuracy:.1%}", flush=True)

outputs = pathlib.Path("outputs")
outputs.mkdir(exist_ok=True)
np.savez(outputs / "model.npz", first=first.numpy(), second=second.numpy())
(outputs / "history.json").write_text(json.dumps(history, indent=1))
print("Wrote outputs/model.npz", flush=True)
