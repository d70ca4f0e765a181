"""Distributed data parallel training on scikit-learn's handwritten digits.

Several processes hold the same model, each reads its own share of the images, and after every
step they average their gradients. The script does not depend on what starts the processes: it reads
MASTER_ADDR, MASTER_PORT, WORLD_SIZE, RANK and LOCAL_RANK from the environment. TrainHub sets them
when it starts every process itself; torchrun sets them when it is started once per node.

After each epoch the first process saves a checkpoint into TRAINHUB_CHECKPOINT_DIR. TrainHub keeps it while
the run runs, and puts it there again, on every node, for a retry, or when the run is resumed.

If MLflow's client is installed, the first process logs with it; the environment contains the address
and the run.
"""

import argparse
import importlib.util
import json
import os
import pathlib
import time

import torch
import torch.distributed as dist
from sklearn.datasets import load_digits
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

GREEN, DIM, BOLD, PLAIN = "\033[32m", "\033[2m", "\033[1m", "\033[0m"
HELD_OUT = 360
CHECKPOINT = pathlib.Path(os.environ.get("TRAINHUB_CHECKPOINT_DIR", "checkpoints")) / "last.pt"


def read_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=20)
    parser.add_argument("--batch-size", type=int, default=32, help="images per process and step")
    parser.add_argument("--learning-rate", type=float, default=1e-3)
    return parser.parse_args()


def join_group() -> torch.device:
    """Joins the other processes: NCCL between GPUs, gloo between CPUs."""
    local_rank = int(os.environ.get("LOCAL_RANK", "0"))
    if torch.cuda.is_available():
        # Every process sees all GPUs of its node and takes the one with its own number.
        device = torch.device("cuda", local_rank % torch.cuda.device_count())
        torch.cuda.set_device(device)
        dist.init_process_group("nccl", device_id=device)
    else:
        device = torch.device("cpu")
        dist.init_process_group("gloo")
    return device


def load_data() -> tuple[TensorDataset, TensorDataset]:
    digits = load_digits()
    images = torch.tensor(digits.images / 16.0, dtype=torch.float32).unsqueeze(1)
    labels = torch.tensor(digits.target, dtype=torch.long)
    # The same seed in every process, so that all agree which images are held out.
    order = torch.randperm(len(labels), generator=torch.Generator().manual_seed(0))
    held_out, used = order[:HELD_OUT], order[HELD_OUT:]
    return TensorDataset(images[used], labels[used]), TensorDataset(images[held_out], labels[held_out])


def build_model() -> nn.Module:
    return nn.Sequential(
        nn.Conv2d(1, 32, 3, padding=1),
        nn.ReLU(),
        nn.Conv2d(32, 64, 3, padding=1),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Dropout(0.25),
        nn.Linear(64 * 4 * 4, 128),
        nn.ReLU(),
        nn.Linear(128, 10),
    )


class Bar:
    """A progress bar that redraws its line with a carriage return, as tqdm does."""

    def __init__(self, label: str, steps: int) -> None:
        self.label, self.steps, self.shown = label, steps, 0.0
        # Under torchrun all processes of a node share one log; there only the first one draws.
        self.draws = "TORCHELASTIC_RUN_ID" not in os.environ or dist.get_rank() == 0

    def update(self, step: int, loss: float) -> None:
        if not self.draws or (time.monotonic() - self.shown < 0.1 and step < self.steps):
            return
        self.shown = time.monotonic()
        done = 24 * step // self.steps
        bar = f"{GREEN}{'━' * done}{PLAIN}{DIM}{'━' * (24 - done)}{PLAIN}"
        print(f"\r{self.label} {bar} {step:>3}/{self.steps}  loss {loss:.4f}", end="", flush=True)

    def close(self) -> None:
        if self.draws:
            print(flush=True)


def train_epoch(
    model: nn.Module, loader: DataLoader, optimizer: torch.optim.Optimizer, device: torch.device, bar: Bar
) -> float:
    model.train()
    total, seen = 0.0, 0
    for step, (images, labels) in enumerate(loader, start=1):
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(images.to(device)), labels.to(device))
        loss.backward()  # here DDP averages the gradients of all processes
        optimizer.step()
        total, seen = total + loss.item() * len(labels), seen + len(labels)
        bar.update(step, total / seen)
    bar.close()
    return total / seen


def evaluate(model: nn.Module, data: TensorDataset, device: torch.device) -> float:
    """Accuracy over all held-out images: each process evaluates its share, then the counts are summed."""
    model.eval()
    share = slice(dist.get_rank(), None, dist.get_world_size())
    images, labels = (tensor[share].to(device) for tensor in data.tensors)
    with torch.no_grad():
        right = (model(images).argmax(1) == labels).sum()
    counts = torch.tensor([right.item(), len(labels)], dtype=torch.float64, device=device)
    dist.all_reduce(counts)
    return (counts[0] / counts[1]).item()


class Log:
    """Logs the metrics of an epoch with MLflow's client, if it is installed, in the first process."""

    def __init__(self, args: argparse.Namespace) -> None:
        self.mlflow = None
        if (
            dist.get_rank() == 0
            and "MLFLOW_TRACKING_URI" in os.environ
            and importlib.util.find_spec("mlflow")
        ):
            self.mlflow = importlib.import_module("mlflow")
            self.mlflow.log_params(vars(args))

    def add(self, epoch: int, **metrics: float) -> None:
        if self.mlflow:
            self.mlflow.log_metrics(metrics, step=epoch)


def restore(model: DistributedDataParallel, optimizer: torch.optim.Optimizer) -> list[dict[str, float]]:
    """Loads the checkpoint, if there is one. Returns the figures of the epochs that are done."""
    if not CHECKPOINT.exists():
        return []
    state = torch.load(CHECKPOINT, map_location="cpu", weights_only=True)
    model.module.load_state_dict(state["model"])
    optimizer.load_state_dict(state["optimizer"])
    return state["history"]


def save_checkpoint(
    model: DistributedDataParallel, optimizer: torch.optim.Optimizer, history: list[dict[str, float]]
) -> None:
    CHECKPOINT.parent.mkdir(parents=True, exist_ok=True)
    # Written under another name first: what is there under its own name is whole.
    aside = CHECKPOINT.with_name(".last.pt")
    torch.save(
        {"model": model.module.state_dict(), "optimizer": optimizer.state_dict(), "history": history}, aside
    )
    aside.rename(CHECKPOINT)


def save(model: DistributedDataParallel, history: list[dict[str, float]]) -> None:
    outputs = pathlib.Path("outputs")
    outputs.mkdir(exist_ok=True)
    torch.save(model.module.state_dict(), outputs / "model.pt")
    (outputs / "history.json").write_text(json.dumps(history, indent=1))


def main() -> None:
    args = read_arguments()
    device = join_group()
    rank, world = dist.get_rank(), dist.get_world_size()
    print(
        f"rank {rank} of {world} on {device}, {dist.get_backend()}, PyTorch {torch.__version__}", flush=True
    )

    torch.manual_seed(rank)
    used, held_out = load_data()
    sampler = DistributedSampler(used, shuffle=True, seed=0)
    loader = DataLoader(used, batch_size=args.batch_size, sampler=sampler)
    model = DistributedDataParallel(
        build_model().to(device), device_ids=[device.index] if device.type == "cuda" else None
    )
    optimizer = torch.optim.Adam(model.parameters(), lr=args.learning_rate)
    print(
        f"rank {rank} reads {len(sampler)} of {len(used)} images in {len(loader)} steps an epoch", flush=True
    )

    log = Log(args)
    history = restore(model, optimizer)
    if history:
        print(f"rank {rank} goes on after epoch {len(history)}", flush=True)
    best = max((done["accuracy"] for done in history), default=0.0)
    for epoch in range(len(history) + 1, args.epochs + 1):
        sampler.set_epoch(epoch)  # without it each process would get the same images in every epoch
        loss = train_epoch(
            model, loader, optimizer, device, Bar(f"epoch {epoch:>2}/{args.epochs}", len(loader))
        )
        accuracy = evaluate(model, held_out, device)
        history.append({"epoch": epoch, "loss": loss, "accuracy": accuracy})
        log.add(epoch, loss=loss, accuracy=accuracy)
        if rank == 0:
            save_checkpoint(model, optimizer, history)
            colour = GREEN if accuracy > best else DIM
            best = max(best, accuracy)
            print(
                f"            accuracy {colour}{accuracy:.1%}{PLAIN} on {len(held_out)} held-out images",
                flush=True,
            )

    if rank == 0:
        save(model, history)
        print(f"{BOLD}Wrote outputs/model.pt{PLAIN}, best accuracy {best:.1%}", flush=True)
    # All wait for the first to finish writing, then leave together.
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
