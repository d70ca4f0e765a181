"""What the snippets of the guides train on hosts: scripts as people write them, small enough to be trained in
seconds. Each logs the loss of every epoch by the names of the Azure ML SDK, and leaves a model."""

from __future__ import annotations

from typing import NamedTuple

PYTORCH = """
import argparse, os
import torch
import torch.distributed as dist
from azureml.core import Run
parser = argparse.ArgumentParser()
parser.add_argument('--epochs', '--num_epochs', type=int)
parser.add_argument('--local_rank', type=int)
parser.add_argument('--output_dir', default='outputs')
arguments = parser.parse_args()
assert arguments.local_rank in (None, int(os.environ.get('LOCAL_RANK', 0))), arguments
if 'MASTER_ADDR' in os.environ:
    dist.init_process_group('gloo')
else:
    dist.init_process_group('gloo', init_method='tcp://127.0.0.1:29517', rank=0, world_size=1)
rank, world = dist.get_rank(), dist.get_world_size()
# The tasks are the processes, or what starts them on each node.
task = os.environ.get('GROUP_RANK', str(rank))
assert os.environ['AZ_BATCHAI_TASK_INDEX'] == task, (os.environ['AZ_BATCHAI_TASK_INDEX'], task)
torch.manual_seed(0)
images = torch.randn(1024, 64)
labels = (images @ torch.randn(64, 10)).argmax(1)[rank::world]
images = images[rank::world]
model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(64, 10))
optimizer = torch.optim.Adam(model.parameters(), 0.05)
run = Run.get_context()
for epoch in range(arguments.epochs):
    optimizer.zero_grad()
    loss = torch.nn.functional.cross_entropy(model(images), labels)
    loss.backward()
    optimizer.step()
    if rank == 0:
        run.log('loss', loss.item())
if rank == 0:
    os.makedirs(arguments.output_dir, exist_ok=True)
    torch.save(model.module.state_dict(), os.path.join(arguments.output_dir, 'model.pt'))
print('rank', rank, 'of', world, 'is done', flush=True)
dist.destroy_process_group()
"""
LIGHTNING = """
import argparse, os
import lightning, torch
from azureml.core import Run
parser = argparse.ArgumentParser()
parser.add_argument('--max_epochs', type=int)
parser.add_argument('--gpus', type=int)
parser.add_argument('--accelerator')
parser.add_argument('--num_nodes', type=int)
arguments = parser.parse_args()
torch.manual_seed(0)
images = torch.randn(512, 64)
data = torch.utils.data.TensorDataset(images, (images @ torch.randn(64, 10)).argmax(1))
run = Run.get_context()

class Classifier(lightning.LightningModule):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(64, 10)
    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters(), 0.02)
    def training_step(self, batch, number):
        loss = torch.nn.functional.cross_entropy(self.layer(batch[0]), batch[1])
        self.log('loss', loss, on_step=False, on_epoch=True, sync_dist=True)
        return loss
    def on_train_epoch_end(self):
        if self.trainer.is_global_zero:
            run.log('loss', float(self.trainer.callback_metrics['loss']))

# What the older Lightning of the guide called the accelerator is the strategy now. These hosts have no GPUs.
trainer = lightning.Trainer(
    accelerator='cpu', devices=arguments.gpus, strategy=arguments.accelerator, num_nodes=arguments.num_nodes,
    max_epochs=arguments.max_epochs, logger=False, enable_checkpointing=False, enable_progress_bar=False)
model = Classifier()
trainer.fit(model, torch.utils.data.DataLoader(data, batch_size=64))
if trainer.is_global_zero:
    os.makedirs('outputs', exist_ok=True)
    torch.save(model.state_dict(), 'outputs/model.pt')
print('rank', trainer.global_rank, 'of', trainer.world_size, 'is done', flush=True)
"""
TENSORFLOW = """
import json, os
import tensorflow as tf
from azureml.core import Run
strategy = tf.distribute.MultiWorkerMirroredStrategy()
index = json.loads(os.environ['TF_CONFIG'])['task']['index']
assert os.environ['AZ_BATCHAI_TASK_INDEX'] == str(index), os.environ['AZ_BATCHAI_TASK_INDEX']
tf.random.set_seed(0)
images = tf.random.normal((512, 64))
targets = images @ tf.random.normal((64, 1))
with strategy.scope():
    weights = tf.Variable(tf.zeros((64, 1)))

@tf.function
def train_step():
    def one_replica():
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean((images @ weights - targets) ** 2)
        summed = tf.distribute.get_replica_context().all_reduce('sum', tape.gradient(loss, weights))
        weights.assign_sub(0.02 * summed)
        return loss
    return strategy.reduce('mean', strategy.run(one_replica), axis=None)

run = Run.get_context()
for epoch in range(50):
    loss = float(train_step())
    if index == 0:
        run.log('loss', loss)
if index == 0:
    os.makedirs('outputs', exist_ok=True)
    open('outputs/model.pt', 'wb').write(tf.io.serialize_tensor(weights.read_value()).numpy())
print('rank', index, 'of', strategy.num_replicas_in_sync, 'is done', flush=True)
"""
MPI = """
import os
from mpi4py import MPI
from azureml.core import Run
world = MPI.COMM_WORLD
assert os.environ['AZ_BATCHAI_TASK_INDEX'] == str(world.rank), os.environ['AZ_BATCHAI_TASK_INDEX']
run, weight = Run.get_context(), 0.0
for epoch in range(50):
    # Each rank has a sample of its own; all follow the mean of their gradients.
    gradient = world.allreduce(2 * (weight - world.rank)) / world.size
    weight -= 0.1 * gradient
    loss = (weight - (world.size - 1) / 2) ** 2
    if world.rank == 0:
        run.log('loss', loss)
if world.rank == 0:
    os.makedirs('outputs', exist_ok=True)
    open('outputs/model.pt', 'w').write(str(weight))
print('rank', world.rank, 'of', world.size, 'is done', flush=True)
"""


class Training(NamedTuple):
    """A snippet and the script that it starts: in how many processes, on how many hosts."""

    snippet: str
    script: str
    ranks: int
    hosts: int = 2
    epochs: int = 50


TRAININGS = (Training("local_rank_as_argument", PYTORCH, 4), Training("mpi_per_process", MPI, 8))
# Horovod itself, which would be compiled for many minutes, trains in tests/examples/test_every_curated.py.
LONG = (
    Training("horovod_of_the_pytorch_guide", MPI, 2),
    Training("pytorch_per_process", PYTORCH, 8),
    Training("launcher_on_each_node", PYTORCH, 8),
    Training("launcher_on_one_node", PYTORCH, 4, hosts=1),
    Training("birds_with_arguments", PYTORCH, 1, hosts=1, epochs=30),
    Training("lightning", LIGHTNING, 4),
    Training("tensorflow", TENSORFLOW, 2),
)
