"""Lightning with two processes, which it starts itself.

needs: lightning
expect: nothing
processes: 2
"""

import lightning as L
import torch
from sklearn.datasets import load_digits
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, TensorDataset


class Digits(L.LightningModule):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(64, 96), nn.ReLU(), nn.Linear(96, 10))

    def forward(self, x):
        return self.net(x)

    def training_step(self, batch, index):
        x, y = batch
        loss = F.cross_entropy(self(x), y)
        self.log("train_loss", loss, on_step=False, on_epoch=True, sync_dist=True)
        return loss

    def validation_step(self, batch, index):
        x, y = batch
        self.log("val_loss", F.cross_entropy(self(x), y), sync_dist=True)

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=0.1, momentum=0.9)


if __name__ == "__main__":
    L.seed_everything(0)
    digits = load_digits()
    x, y = torch.tensor(digits.data / 16, dtype=torch.float32), torch.tensor(digits.target)
    train = DataLoader(TensorDataset(x[:1408], y[:1408]), 32, shuffle=True)
    valid = DataLoader(TensorDataset(x[1408:1792], y[1408:1792]), 64)
    trainer = L.Trainer(
        max_epochs=5, accelerator="cpu", devices=2, strategy="ddp", logger=False,
        enable_checkpointing=False, enable_progress_bar=False, enable_model_summary=False,
    )  # fmt: skip
    trainer.fit(Digits(), train, valid)
    metrics = trainer.callback_metrics
    if trainer.is_global_zero:
        print(
            "logged: train",
            float(metrics["train_loss"]),
            "over 22 eval",
            float(metrics["val_loss"]),
        )
