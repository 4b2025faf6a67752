"""Lightning goes on from its own checkpoint, with two loggers, a bar and a checkpoint per epoch.

needs: lightning
expect: nothing
"""

import csv
import os
import shutil
import tempfile
from pathlib import Path

import lightning as L
import torch
from lightning.pytorch.callbacks import ModelCheckpoint
from lightning.pytorch.loggers import CSVLogger, TensorBoardLogger
from sklearn.datasets import load_digits
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, TensorDataset

L.seed_everything(0)


class Digits(L.LightningModule):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(64, 96), nn.GELU(), nn.Linear(96, 10))

    def forward(self, x):
        return self.net(x)

    def training_step(self, batch, index):
        x, y = batch
        loss = F.cross_entropy(self(x), y)
        self.log("train_loss", loss, on_step=True, on_epoch=True, prog_bar=True)
        return loss

    def validation_step(self, batch, index):
        x, y = batch
        self.log("val_loss", F.cross_entropy(self(x), y), prog_bar=True)

    def configure_optimizers(self):
        return torch.optim.AdamW(self.parameters(), lr=2e-3)


digits = load_digits()
x, y = torch.tensor(digits.data / 16, dtype=torch.float32), torch.tensor(digits.target)
train = DataLoader(TensorDataset(x[:1400], y[:1400]), 32, shuffle=True)
valid = DataLoader(TensorDataset(x[1400:], y[1400:]), 128)
model = Digits()
# Named after the process: Lightning prints where its checkpoints are.
folder = Path(tempfile.gettempdir()) / str(os.getpid())


def trainer(epochs):
    return L.Trainer(
        max_epochs=epochs, accelerator="cpu", default_root_dir=folder, log_every_n_steps=10,
        logger=[CSVLogger(folder, version=epochs), TensorBoardLogger(folder, version=epochs)],
        callbacks=[ModelCheckpoint(save_last=True, dirpath=folder)],
    )  # fmt: skip


trainer(3).fit(model, train, valid)
last = trainer(6)
last.fit(model, train, valid, ckpt_path=folder / "last.ckpt")
with open(folder / "lightning_logs" / "version_6" / "metrics.csv") as file:
    rows = list(csv.DictReader(file))
shutil.rmtree(folder)
print("rows", [row["val_loss"] for row in rows if row["val_loss"]])
metrics = last.callback_metrics
print(
    "logged: train", float(metrics["train_loss_epoch"]), "over 44 eval", float(metrics["val_loss"])
)
