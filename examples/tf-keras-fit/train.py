"""Keras' own `fit` on several TensorFlow workers, with automatic logging.

Keras 3's `fit` does not work under MultiWorkerMirroredStrategy, tf-keras' does: TF_USE_LEGACY_KERAS=1 must
be set before TensorFlow is imported. TrainHub sets TF_CONFIG for each worker, and the variables of MLflow's
client. If the client is installed, `autolog` logs the first worker's losses, metrics and settings. If
TensorBoard is installed, the first worker writes its event files below logs/, and the run's page shows them
as curves too.
"""

import argparse
import importlib.util
import json
import os
import pathlib

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
os.environ.setdefault("TF_USE_LEGACY_KERAS", "1")

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

if first and "MLFLOW_TRACKING_URI" in os.environ and importlib.util.find_spec("mlflow"):
    import mlflow.tensorflow

    # Saving the model needs all workers, so autologging leaves it to the end of this script.
    mlflow.tensorflow.autolog(log_models=False, log_datasets=False)
callbacks = (
    [tf.keras.callbacks.TensorBoard("logs")] if first and importlib.util.find_spec("tensorboard") else []
)

digits = load_digits()
images, labels = (digits.images[..., np.newaxis] / 16.0).astype("float32"), digits.target.astype("int64")
order = np.random.default_rng(0).permutation(len(labels))
held_out, used = order[:HELD_OUT], order[HELD_OUT:]
# Every worker reads the whole list and takes its own part of each batch.
options = tf.data.Options()
options.experimental_distribute.auto_shard_policy = tf.data.experimental.AutoShardPolicy.DATA


def batches(chosen):
    data = tf.data.Dataset.from_tensor_slices((images[chosen], labels[chosen]))
    return data.batch(args.batch_size, drop_remainder=True).with_options(options)


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
    model.compile(
        tf.keras.optimizers.Adam(args.learning_rate),
        tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True),
        metrics=["accuracy"],
    )
seen = model.fit(
    batches(used).shuffle(32, seed=0),
    validation_data=batches(held_out),
    epochs=args.epochs,
    verbose=2,
    callbacks=callbacks,
)

# All workers take part in saving too; the files of the others are discarded.
outputs = pathlib.Path("outputs" if first else f"scratch-{task['index']}")
outputs.mkdir(exist_ok=True)
model.save(outputs / "model.keras")
if first:
    told = {name: [float(value) for value in values] for name, values in seen.history.items()}
    (outputs / "history.json").write_text(json.dumps(told, indent=1))
    print("Wrote outputs/model.keras", flush=True)
