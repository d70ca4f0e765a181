"""Synchronous training on several TensorFlow workers with MultiWorkerMirroredStrategy.

The strategy reads TF_CONFIG, which TrainHub sets for every worker before this script starts: the
addresses of all workers and the index of this one. The training loop is explicit, because Keras 3's
`fit` does not work under this strategy (with tf-keras and TF_USE_LEGACY_KERAS=1 it does: see
`../tf-keras-fit/train.py`). The first worker logs with MLflow's client if it is installed.
"""

import argparse
import importlib.util
import json
import os
import pathlib
import time

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

import numpy as np
import tensorflow as tf
from sklearn.datasets import load_digits

HELD_OUT = 360

parser = argparse.ArgumentParser()
parser.add_argument("--epochs", type=int, default=12)
parser.add_argument("--batch-size", type=int, default=64, help="images per step, over all workers")
parser.add_argument("--learning-rate", type=float, default=2e-3)
args = parser.parse_args()

# Create the strategy before anything else uses TensorFlow: it starts this worker's server.
strategy = tf.distribute.MultiWorkerMirroredStrategy()
task = json.loads(os.environ.get("TF_CONFIG", "{}")).get("task", {"type": "worker", "index": 0})
first = task["type"] == "chief" or task["index"] == 0
workers = strategy.num_replicas_in_sync
print(f"{task['type']} {task['index']}: {workers} replicas in step, TensorFlow {tf.__version__}", flush=True)

digits = load_digits()
images, labels = (digits.images[..., np.newaxis] / 16.0).astype("float32"), digits.target.astype("int64")
order = np.random.default_rng(0).permutation(len(labels))
held_out, used = order[:HELD_OUT], order[HELD_OUT:]
steps = len(used) // args.batch_size

dataset = (
    tf.data.Dataset.from_tensor_slices((images[used], labels[used]))
    .shuffle(len(used), seed=0)
    .batch(args.batch_size, drop_remainder=True)
)
# Every worker reads the whole list and takes its own part of each batch.
options = tf.data.Options()
options.experimental_distribute.auto_shard_policy = tf.data.experimental.AutoShardPolicy.DATA
batches = strategy.experimental_distribute_dataset(dataset.with_options(options))

with strategy.scope():
    model = tf.keras.Sequential(
        [
            tf.keras.layers.Input((8, 8, 1)),
            tf.keras.layers.Conv2D(32, 3, padding="same", activation="relu"),
            tf.keras.layers.MaxPooling2D(),
            tf.keras.layers.Flatten(),
            tf.keras.layers.Dense(128, activation="relu"),
            tf.keras.layers.Dense(10),
        ]
    )
    optimizer = tf.keras.optimizers.Adam(args.learning_rate)
    optimizer.build(model.trainable_variables)


@tf.function
def train_step(batch):
    def one_replica(pictures, targets):
        with tf.GradientTape() as tape:
            each = tf.nn.sparse_softmax_cross_entropy_with_logits(
                labels=targets, logits=model(pictures, training=True)
            )
            # Divided by the size of the whole batch, so that the sum over the workers is its mean.
            loss = tf.nn.compute_average_loss(each, global_batch_size=args.batch_size)
        gradients = tape.gradient(loss, model.trainable_variables)
        optimizer.apply_gradients(zip(gradients, model.trainable_variables, strict=True))
        return loss

    return strategy.reduce(tf.distribute.ReduceOp.SUM, strategy.run(one_replica, args=batch), axis=None)


@tf.function
def predict(pictures):
    return tf.argmax(model(pictures, training=False), axis=1)


log_metrics = None
if first and "MLFLOW_TRACKING_URI" in os.environ and importlib.util.find_spec("mlflow"):
    from mlflow import log_metrics

history = []
for epoch in range(1, args.epochs + 1):
    started, total = time.monotonic(), 0.0
    for batch in batches:
        total += float(train_step(batch))
    accuracy = float(np.mean(predict(images[held_out]).numpy() == labels[held_out]))
    history.append({"epoch": epoch, "loss": total / steps, "accuracy": accuracy})
    if log_metrics:
        log_metrics({"loss": total / steps, "accuracy": accuracy}, step=epoch)
    print(
        f"epoch {epoch:>2}/{args.epochs}  loss {total / steps:.4f}  accuracy {accuracy:.1%}  "
        f"{time.monotonic() - started:.1f} s",
        flush=True,
    )

# The replicas have the same weights, so only one of them writes.
if first:
    outputs = pathlib.Path("outputs")
    outputs.mkdir(exist_ok=True)
    model.save(outputs / "model.keras")
    (outputs / "history.json").write_text(json.dumps(history, indent=1))
    print("Wrote outputs/model.keras", flush=True)
