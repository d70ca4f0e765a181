"""The handwritten digits with Lightning's Trainer.

If it is started once per node, Lightning starts `--devices` processes there. It connects to the other
nodes with MASTER_ADDR, MASTER_PORT and NODE_RANK, and computes every rank from `--devices` and
`--num_nodes`. If it is started once per process, it reads its rank from LOCAL_RANK; the defaults of
the two options below fit that case too.

If MLflow's client is installed, Lightning logs with it to this run.

After each epoch Lightning saves a checkpoint into TRAINHUB_CHECKPOINT_DIR. TrainHub keeps it while the run
goes on, and puts it there again for a retry, or when the run is resumed.
"""

import argparse
import importlib.util
import json
import os
import pathlib
from typing import Any

import lightning
import torch
from lightning.pytorch.loggers import MLFlowLogger
from sklearn.datasets import load_digits
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

HELD_OUT = 360
CHECKPOINT = pathlib.Path(os.environ.get("TRAINHUB_CHECKPOINT_DIR", "checkpoints")) / "last.ckpt"


def read_arguments() -> argparse.Namespace:
    here = int(os.environ.get("LOCAL_WORLD_SIZE", "1"))
    everywhere = int(os.environ.get("WORLD_SIZE", "1"))
    parser = argparse.ArgumentParser()
    parser.add_argument("--max_epochs", type=int, default=8)
    parser.add_argument(
        "--devices", type=int, default=max(here, torch.cuda.device_count()), help="processes on each node"
    )
    parser.add_argument("--num_nodes", type=int, default=max(1, everywhere // here))
    parser.add_argument("--batch_size", type=int, default=32, help="images per process and step")
    parser.add_argument("--learning_rate", type=float, default=1e-3)
    return parser.parse_args()


def make_logger() -> MLFlowLogger | bool:
    """Lightning does not read MLFLOW_RUN_ID by itself, and would log to another run."""
    run = os.environ.get("MLFLOW_RUN_ID")
    return MLFlowLogger(run_id=run) if run and importlib.util.find_spec("mlflow") else False


def load_data() -> tuple[TensorDataset, TensorDataset]:
    digits = load_digits()
    images = torch.tensor(digits.images / 16.0, dtype=torch.float32).unsqueeze(1)
    labels = torch.tensor(digits.target, dtype=torch.long)
    # The same seed in every process, so that all agree which images are held out.
    order = torch.randperm(len(labels), generator=torch.Generator().manual_seed(0))
    held_out, used = order[:HELD_OUT], order[HELD_OUT:]
    return TensorDataset(images[used], labels[used]), TensorDataset(images[held_out], labels[held_out])


class Digits(lightning.LightningModule):
    def __init__(self, learning_rate: float) -> None:
        super().__init__()
        self.save_hyperparameters()
        self.learning_rate = learning_rate
        self.history: list[dict[str, float]] = []
        self.layers = nn.Sequential(
            nn.Conv2d(1, 32, 3, padding=1),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Flatten(),
            nn.Linear(32 * 4 * 4, 128),
            nn.ReLU(),
            nn.Linear(128, 10),
        )

    def configure_optimizers(self) -> torch.optim.Optimizer:
        return torch.optim.Adam(self.parameters(), lr=self.learning_rate)

    def training_step(self, batch: list[torch.Tensor]) -> torch.Tensor:
        images, labels = batch
        loss = nn.functional.cross_entropy(self.layers(images), labels)
        self.log("loss", loss, on_step=False, on_epoch=True, sync_dist=True)
        return loss

    def validation_step(self, batch: list[torch.Tensor]) -> None:
        images, labels = batch
        right = (self.layers(images).argmax(1) == labels).float().mean()
        self.log("accuracy", right, on_epoch=True, sync_dist=True)

    def on_fit_start(self) -> None:
        world = self.trainer.world_size
        print(
            f"rank {self.global_rank} of {world} on {self.device}, Lightning {lightning.__version__}",
            flush=True,
        )

    def on_train_epoch_end(self) -> None:
        metrics = {name: float(self.trainer.callback_metrics[name]) for name in ("loss", "accuracy")}
        self.history.append({"epoch": self.current_epoch + 1, **metrics})
        if self.trainer.is_global_zero:
            print(
                f"epoch {self.current_epoch + 1}/{self.trainer.max_epochs}  loss {metrics['loss']:.4f}  "
                f"accuracy {metrics['accuracy']:.1%}",
                flush=True,
            )
        # Saved by all, written by the first. What gets its name by a rename is a whole checkpoint.
        aside = CHECKPOINT.with_name(".last.ckpt")
        self.trainer.save_checkpoint(aside)
        if self.trainer.is_global_zero:
            aside.rename(CHECKPOINT)

    def on_save_checkpoint(self, checkpoint: dict[str, Any]) -> None:
        checkpoint["history"] = self.history

    def on_load_checkpoint(self, checkpoint: dict[str, Any]) -> None:
        self.history = checkpoint["history"]
        print(f"rank {self.global_rank} goes on after epoch {len(self.history)}", flush=True)


def main() -> None:
    args = read_arguments()
    lightning.seed_everything(0, verbose=False)
    used, held_out = load_data()
    model = Digits(args.learning_rate)
    trainer = lightning.Trainer(
        max_epochs=args.max_epochs,
        devices=args.devices,
        num_nodes=args.num_nodes,
        strategy="ddp",
        accelerator="gpu" if torch.cuda.is_available() else "cpu",
        logger=make_logger(),
        log_every_n_steps=10,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
    )
    trainer.fit(
        model,
        DataLoader(used, args.batch_size, shuffle=True),
        DataLoader(held_out, 120),
        ckpt_path=str(CHECKPOINT) if CHECKPOINT.exists() else None,
    )
    trainer.save_checkpoint("outputs/model.ckpt")  # called by all, written by the first
    if trainer.is_global_zero:
        pathlib.Path("outputs/history.json").write_text(json.dumps(model.history, indent=1))
        print("Wrote outputs/model.ckpt", flush=True)


if __name__ == "__main__":
    main()
