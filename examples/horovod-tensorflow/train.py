"""Horovod with TensorFlow on scikit-learn's handwritten digits, with an explicit training loop.

`DistributedGradientTape` averages the gradients over all processes. Horovod's Keras API does not support
Keras 3 (TensorFlow from 2.16 on); the tape works with it.
"""

import os

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

import argparse
import json
import pathlib

import horovod.tensorflow as hvd
import numpy as np
import tensorflow as tf
from sklearn.datasets import load_digits

HELD_OUT = 360

parser = argparse.ArgumentParser()
parser.add_argument("--epochs", type=int, default=8)
parser.add_argument("--batch-size", type=int, default=32, help="images per process and step")
parser.add_argument("--learning-rate", type=float, default=1e-3)
args = parser.parse_args()

hvd.init()
rank, size = hvd.rank(), hvd.size()
gpus = tf.config.list_physical_devices("GPU")
if gpus:
    # TensorFlow takes all memory of every GPU that it sees, so each process uses its own GPU.
    tf.config.set_visible_devices(gpus[hvd.local_rank()], "GPU")
print(f"rank {rank} of {size}, {hvd.local_rank()} on its node, TensorFlow {tf.__version__}", flush=True)

digits = load_digits()
images, labels = (digits.images[..., np.newaxis] / 16.0).astype("float32"), digits.target.astype("int64")
order = np.random.default_rng(0).permutation(len(labels))
held_out, used = order[:HELD_OUT], order[HELD_OUT:]
# Equal shares: a process with more steps than the others would wait forever.
mine = used[: len(used) // size * size][rank::size]
data = (
    tf.data.Dataset.from_tensor_slices((images[mine], labels[mine]))
    .shuffle(len(mine), seed=rank)
    .batch(args.batch_size)
)

tf.random.set_seed(rank)  # different on purpose: after the broadcast below all start from rank 0's weights
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
# Horovod needs TensorFlow's own variables, which Keras 3 wraps.
weights = [variable.value for variable in model.trainable_variables]
hvd.broadcast_variables([*weights, *(variable.value for variable in optimizer.variables)], root_rank=0)


@tf.function
def train_step(batch, targets):
    with tf.GradientTape() as tape:
        each = tf.nn.sparse_softmax_cross_entropy_with_logits(
            labels=targets, logits=model(batch, training=True)
        )
        loss = tf.reduce_mean(each)
    gradients = hvd.DistributedGradientTape(tape).gradient(loss, weights)
    optimizer.apply_gradients(zip(gradients, model.trainable_variables, strict=True))
    return loss


history = []
for epoch in range(1, args.epochs + 1):
    losses = [float(train_step(batch, targets)) for batch, targets in data]
    loss = float(hvd.allreduce(tf.constant(np.mean(losses))))
    accuracy = float(np.mean(model(images[held_out]).numpy().argmax(1) == labels[held_out]))
    history.append({"epoch": epoch, "loss": loss, "accuracy": accuracy})
    print(f"epoch {epoch}/{args.epochs}  loss {loss:.4f}  accuracy {accuracy:.1%}", flush=True)

# Every process must have arrived at the same weights; a difference would mean a broken reduction.
checksum = tf.reduce_sum([tf.reduce_sum(weight) for weight in weights])
assert np.allclose(hvd.allgather(tf.reshape(checksum, [1])), checksum), (
    "the processes disagree about the weights"
)
if rank == 0:
    outputs = pathlib.Path("outputs")
    outputs.mkdir(exist_ok=True)
    model.save(outputs / "model.keras")
    (outputs / "history.json").write_text(json.dumps(history, indent=1))
    print("Wrote outputs/model.keras", flush=True)
