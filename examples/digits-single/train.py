"""Train a small network on scikit-learn's handwritten digits, in one process.

The data (1,797 real 8x8 images) is part of scikit-learn: nothing is downloaded.
Read `../digits-ddp/train.py` next to see what changes when several processes train together.
If TensorBoard is installed, its event files go below logs/, and the run's page shows them as curves.
"""

import argparse
import importlib.util
import json
import pathlib
import time

import torch
from model import make_model
from sklearn.datasets import load_digits
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

parser = argparse.ArgumentParser()
parser.add_argument("--epochs", type=int, default=15)
parser.add_argument("--batch-size", type=int, default=64)
parser.add_argument("--learning-rate", type=float, default=1e-3)
args = parser.parse_args()

torch.manual_seed(0)
device = torch.device("cuda" if torch.cuda.is_available() else "cpu")

digits = load_digits()
images = torch.tensor(digits.images / 16.0, dtype=torch.float32).unsqueeze(1)
labels = torch.tensor(digits.target, dtype=torch.long)
order = torch.randperm(len(labels))
held_out, used = order[:360], order[360:]
loader = DataLoader(TensorDataset(images[used], labels[used]), batch_size=args.batch_size, shuffle=True)

model = make_model().to(device)
optimizer = torch.optim.Adam(model.parameters(), lr=args.learning_rate)
loss_of = nn.CrossEntropyLoss()

board = None
if importlib.util.find_spec("tensorboard"):
    from torch.utils.tensorboard import SummaryWriter

    board = SummaryWriter("logs", flush_secs=1)

print(f"{len(used)} images to learn from, {len(held_out)} held out, on {device}")
history = []
for epoch in range(1, args.epochs + 1):
    started = time.monotonic()
    model.train()
    total = 0.0
    for batch, targets in loader:
        optimizer.zero_grad()
        loss = loss_of(model(batch.to(device)), targets.to(device))
        loss.backward()
        optimizer.step()
        total += loss.item() * len(targets)

    model.eval()
    with torch.no_grad():
        right = (model(images[held_out].to(device)).argmax(1) == labels[held_out].to(device)).sum().item()
    history.append({"epoch": epoch, "loss": total / len(used), "accuracy": right / len(held_out)})
    if board:
        board.add_scalar("loss", history[-1]["loss"], epoch)
        board.add_scalar("accuracy", history[-1]["accuracy"], epoch)
    print(
        f"epoch {epoch:>2}/{args.epochs}  loss {history[-1]['loss']:.4f}  "
        f"accuracy {history[-1]['accuracy']:.1%}  {time.monotonic() - started:.1f} s"
    )

if board:
    board.close()
outputs = pathlib.Path("outputs")
outputs.mkdir(exist_ok=True)
torch.save(model.state_dict(), outputs / "model.pt")
(outputs / "history.json").write_text(json.dumps(history, indent=1))
print("Wrote outputs/model.pt and outputs/history.json")
