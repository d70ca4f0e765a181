"""What the frameworks say of an environment, an argument or a machine that they cannot work with."""

from __future__ import annotations

from tests.jobs.causes.corpus.case import Case

TRAINER = "from transformers import TrainingArguments\n"
DEEPSPEED = """import deepspeed, torch
model = torch.nn.Linear(4, 2)
config = {"train_batch_size": 7, "train_micro_batch_size_per_gpu": 2,
    "optimizer": {"type": "SGD", "params": {"lr": 0.1}}}
"""
KERAS = """import numpy, tensorflow as tf
strategy = tf.distribute.MultiWorkerMirroredStrategy()
with strategy.scope():
    model = tf.keras.Sequential([tf.keras.layers.Input((4,)), tf.keras.layers.Dense(1)])
    model.compile("sgd", "mse")
model.fit(numpy.ones((16, 4)), numpy.ones((16, 1)), batch_size=8, verbose=0)
"""
SERVERS = """import tensorflow as tf
tf.distribute.MultiWorkerMirroredStrategy()
"""
FRAMEWORKS: dict[str, Case] = {
    "trainer_no_cuda": Case(
        TRAINER + "TrainingArguments('out', no_cuda=True)\n", 0, "trainer_argument_gone", "no_cuda"
    ),
    "trainer_overwrite": Case(
        "from transformers import HfArgumentParser, TrainingArguments\n"
        "HfArgumentParser(TrainingArguments).parse_args_into_dataclasses()\n",
        0,
        "trainer_argument_gone",
        "overwrite_output_dir",
        arguments=("--output_dir", "out", "--overwrite_output_dir"),
    ),
    "hub_offline": Case(
        "from transformers import AutoModel\nAutoModel.from_pretrained('bert-base-uncased')\n",
        0,
        "no_network",
        "huggingface.co",
        env={"HF_HUB_OFFLINE": "1"},
    ),
    "lightning_devices": Case(
        "import lightning\nfrom lightning.pytorch.demos.boring_classes import BoringModel\n"
        "lightning.Trainer(accelerator='cpu', devices=4, strategy='ddp', logger=False, "
        "max_steps=1).fit(BoringModel())\n",
        0,
        "process_counts",
        "does not match the world size",
        launch="torchrun",
        processes=2,
    ),
    "deepspeed_batch": Case(
        DEEPSPEED + "deepspeed.initialize(model=model, config=config)\n",
        0,
        "batch_size",
        "train_batch_size is not equal",
        env={"RANK": "0", "WORLD_SIZE": "1", "LOCAL_RANK": "0"},
    ),
    "deepspeed_fp16": Case(
        "import deepspeed, torch\nconfig = {'train_batch_size': 1, 'fp16': {'enabled': True}, "
        "'optimizer': {'type': 'SGD', 'params': {'lr': 0.1}}}\n"
        "deepspeed.initialize(model=torch.nn.Linear(4, 2), config=config)\n",
        0,
        "half_precision",
        "fp16",
    ),
    "deepspeed_equal_host_names": Case(
        "import os, deepspeed\nif os.environ['OMPI_COMM_WORLD_RANK'] == '1':\n"
        "    os.environ['OMPI_COMM_WORLD_LOCAL_RANK'] = '0'\n"
        "import torch\ndeepspeed.init_distributed()\nos.environ['LOCAL_RANK'] = "
        "os.environ['OMPI_COMM_WORLD_RANK']\n"
        "config = {'train_batch_size': 2, 'optimizer': {'type': 'SGD', 'params': {'lr': 0.1}}}\n"
        "deepspeed.initialize(model=torch.nn.Linear(4, 2), config=config)\n",
        1,
        "equal_host_names",
        "OMPI_COMM_WORLD_LOCAL_RANK",
        launch="mpi",
        processes=2,
    ),
    "horovod_not_built": Case(
        "import horovod.mxnet",
        0,
        "horovod_not_built",
        "horovod.mxnet has not been built",
    ),
    "keras_per_replica": Case(
        KERAS,
        1,
        "keras_per_replica",
        "PerReplica",
        launch="tensorflow",
        processes=2,
        linger_s=8,
    ),
    "empty_ps": Case(SERVERS, 0, "segmentation_fault", "", launch="empty_ps"),
}
