"""DeepSpeed with ZeRO on scikit-learn's handwritten digits.

MPI starts the processes; DeepSpeed's own launcher is not needed. `init_distributed` finds rank, size
and rendezvous in the environment. ZeRO stage 1 partitions the optimizer's state across the processes,
stage 2 also the gradients, stage 3 also the parameters.

After each epoch every process saves its part of a checkpoint into TRAINHUB_CHECKPOINT_DIR. TrainHub keeps the
parts of all nodes together, and puts them there again, on every node, for a retry, or when the run is
resumed.
"""

import argparse
import json
import os
import pathlib

import deepspeed
import torch
import torch.distributed as dist
from sklearn.datasets import load_digits
from torch import nn
from torch.utils.data import TensorDataset

HELD_OUT = 360

parser = argparse.ArgumentParser()
parser.add_argument("--epochs", type=int, default=6)
parser.add_argument("--batch-size", type=int, default=32, help="images per process and step")
parser.add_argument("--learning-rate", type=float, default=1e-3)
parser.add_argument("--stage", type=int, choices=(0, 1, 2, 3), default=2, help="of ZeRO")
args = parser.parse_args()

deepspeed.init_distributed()
rank, world = dist.get_rank(), dist.get_world_size()
print(
    f"rank {rank} of {world}, {os.environ['LOCAL_RANK']} on its node, {dist.get_backend()}, ZeRO "
    f"{args.stage}",
    flush=True,
)

digits = load_digits()
images = torch.tensor(digits.images / 16.0, dtype=torch.float32).unsqueeze(1)
labels = torch.tensor(digits.target, dtype=torch.long)
# The same seed in every process, so that all agree which images are held out.
order = torch.randperm(len(labels), generator=torch.Generator().manual_seed(0))
held_out, used = order[:HELD_OUT], TensorDataset(images[order[HELD_OUT:]], labels[order[HELD_OUT:]])

model = nn.Sequential(
    nn.Conv2d(1, 32, 3, padding=1),
    nn.ReLU(),
    nn.MaxPool2d(2),
    nn.Flatten(),
    nn.Linear(32 * 4 * 4, 128),
    nn.ReLU(),
    nn.Linear(128, 10),
)
settings = {
    "train_micro_batch_size_per_gpu": args.batch_size,
    # torch_adam: DeepSpeed's own Adam for CPUs would be compiled first, for minutes.
    "optimizer": {"type": "Adam", "params": {"lr": args.learning_rate, "torch_adam": True}},
    "zero_optimization": {"stage": args.stage},
    # Each node has a folder of its own, and makes it itself.
    "checkpoint": {"use_node_local_storage": True},
    "steps_per_print": 10**9,
}
engine, _, loader, _ = deepspeed.initialize(
    model=model, model_parameters=model.parameters(), training_data=used, config=settings
)

checkpoints = pathlib.Path(os.environ.get("TRAINHUB_CHECKPOINT_DIR", "checkpoints"))
history = []
if (checkpoints / "latest").exists():
    history = engine.load_checkpoint(str(checkpoints))[1]["history"]
    print(f"rank {rank} goes on after epoch {len(history)}", flush=True)
for epoch in range(len(history) + 1, args.epochs + 1):
    loader.data_sampler.set_epoch(epoch)
    losses = []
    for batch, targets in loader:
        loss = nn.functional.cross_entropy(engine(batch.to(engine.device)), targets.to(engine.device))
        engine.backward(loss)
        engine.step()
        losses.append(loss.item())
    mean = torch.tensor(sum(losses) / len(losses), device=engine.device)
    dist.all_reduce(mean)
    with torch.no_grad():
        scores = engine(images[held_out].to(engine.device))
    accuracy = (scores.argmax(1).cpu() == labels[held_out]).float().mean().item()
    history.append({"epoch": epoch, "loss": mean.item() / world, "accuracy": accuracy})
    print(f"epoch {epoch}/{args.epochs}  loss {mean.item() / world:.4f}  accuracy {accuracy:.1%}", flush=True)
    engine.save_checkpoint(str(checkpoints), tag=f"epoch-{epoch}", client_state={"history": history})

# All take part: under stage 3 no process has all the weights until they are gathered.
with deepspeed.zero.GatheredParameters(list(engine.module.parameters())):
    if rank == 0:
        outputs = pathlib.Path("outputs")
        outputs.mkdir(exist_ok=True)
        torch.save(engine.module.state_dict(), outputs / "model.pt")
        (outputs / "history.json").write_text(json.dumps(history, indent=1))
        print("Wrote outputs/model.pt", flush=True)
dist.barrier()
dist.destroy_process_group()
