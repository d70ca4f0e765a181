"""Horovod with PyTorch on scikit-learn's handwritten digits.

MPI starts the processes and numbers them; Horovod finds its peers through MPI alone. Four lines make
a script distributed: `init`, the sampler, `DistributedOptimizer` and the broadcast of the initial state.
"""

import argparse
import json
import pathlib

import horovod.torch as hvd
import torch
from sklearn.datasets import load_digits
from torch import nn
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

HELD_OUT = 360

parser = argparse.ArgumentParser()
parser.add_argument("--epochs", type=int, default=8)
parser.add_argument("--batch-size", type=int, default=32, help="images per process and step")
parser.add_argument("--learning-rate", type=float, default=1e-3)
args = parser.parse_args()

hvd.init()
rank, size = hvd.rank(), hvd.size()
device = torch.device("cuda", hvd.local_rank()) if torch.cuda.is_available() else torch.device("cpu")
print(
    f"rank {rank} of {size}, {hvd.local_rank()} on its node, {device}, PyTorch {torch.__version__}",
    flush=True,
)

digits = load_digits()
images = torch.tensor(digits.images / 16.0, dtype=torch.float32).unsqueeze(1)
labels = torch.tensor(digits.target, dtype=torch.long)
# The same seed in every process, so that all agree which images are held out.
order = torch.randperm(len(labels), generator=torch.Generator().manual_seed(0))
held_out, used = order[:HELD_OUT], TensorDataset(images[order[HELD_OUT:]], labels[order[HELD_OUT:]])
sampler = DistributedSampler(used, num_replicas=size, rank=rank, seed=0)
loader = DataLoader(used, batch_size=args.batch_size, sampler=sampler)

torch.manual_seed(rank)  # different on purpose: after the broadcast below all start from rank 0's weights
model = nn.Sequential(
    nn.Conv2d(1, 32, 3, padding=1),
    nn.ReLU(),
    nn.MaxPool2d(2),
    nn.Flatten(),
    nn.Linear(32 * 4 * 4, 128),
    nn.ReLU(),
    nn.Linear(128, 10),
).to(device)
optimizer = torch.optim.Adam(model.parameters(), lr=args.learning_rate)
optimizer = hvd.DistributedOptimizer(optimizer, named_parameters=model.named_parameters())
hvd.broadcast_parameters(model.state_dict(), root_rank=0)
hvd.broadcast_optimizer_state(optimizer, root_rank=0)

history = []
for epoch in range(1, args.epochs + 1):
    sampler.set_epoch(epoch)
    total = 0.0
    for batch, targets in loader:
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(batch.to(device)), targets.to(device))
        loss.backward()  # Horovod averages each gradient while the others are still computed
        optimizer.step()
        total += loss.item()
    mean = hvd.allreduce(torch.tensor(total / len(loader)), name="loss").item()
    with torch.no_grad():
        accuracy = (
            (model(images[held_out].to(device)).argmax(1).cpu() == labels[held_out]).float().mean().item()
        )
    history.append({"epoch": epoch, "loss": mean, "accuracy": accuracy})
    print(f"epoch {epoch}/{args.epochs}  loss {mean:.4f}  accuracy {accuracy:.1%}", flush=True)

# Every process must have arrived at the same weights; a difference would mean a broken reduction.
checksum = torch.stack([parameter.detach().sum() for parameter in model.parameters()]).sum().cpu()
checksums = hvd.allgather(checksum.reshape(1), name="checksum")
assert torch.allclose(checksums, checksum), "the processes disagree about the weights"
if rank == 0:
    outputs = pathlib.Path("outputs")
    outputs.mkdir(exist_ok=True)
    torch.save(model.state_dict(), outputs / "model.pt")
    (outputs / "history.json").write_text(json.dumps(history, indent=1))
    print("Wrote outputs/model.pt", flush=True)
