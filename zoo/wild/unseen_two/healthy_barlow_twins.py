"""Barlow Twins in Lightning: the loss is a correlation over the batch, so rows depend on each other on purpose.

expect: nothing
metric: accuracy of a ridge probe, higher is better
"""

import argparse
import logging
import warnings

import lightning as L
import torch
import torch.nn as nn
from sklearn.datasets import load_digits
from sklearn.linear_model import RidgeClassifier
from torch.utils.data import DataLoader, TensorDataset

logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)
warnings.filterwarnings("ignore")


def augment(x):
    shift = torch.randint(-1, 2, (2,)).tolist()
    x = torch.roll(x, shift, dims=(2, 3))
    return x * (torch.rand_like(x) > 0.1) + 0.1 * torch.randn_like(x)


class BarlowTwins(L.LightningModule):
    def __init__(self, lambd=0.01):
        super().__init__()
        self.lambd = lambd
        self.backbone = nn.Sequential(nn.Conv2d(1, 16, 3), nn.ReLU(), nn.Conv2d(16, 32, 3), nn.ReLU(), nn.Flatten(), nn.Linear(512, 64))
        self.projector = nn.Sequential(nn.Linear(64, 64), nn.BatchNorm1d(64), nn.ReLU(), nn.Linear(64, 32))
        self.bn = nn.BatchNorm1d(32, affine=False)

    def training_step(self, batch, batch_idx):
        (x,) = batch
        z1, z2 = (self.bn(self.projector(self.backbone(augment(x)))) for _ in range(2))
        c = z1.T @ z2 / len(x)
        on_diag = (torch.diagonal(c) - 1).pow(2).sum()
        off_diag = c.pow(2).sum() - torch.diagonal(c).pow(2).sum()
        loss = on_diag + self.lambd * off_diag
        if self.global_step % 30 == 0:
            print("step", self.global_step, "loss", loss.item())
        return loss

    def configure_optimizers(self):
        return torch.optim.AdamW(self.parameters(), lr=2e-3, weight_decay=1e-5)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    L.seed_everything(parser.parse_args().seed, verbose=False)
    digits = load_digits()
    x = torch.tensor(digits.images, dtype=torch.float32)[:, None] / 16
    model = BarlowTwins()
    trainer = L.Trainer(max_epochs=10, accelerator="cpu", logger=False, enable_checkpointing=False, enable_progress_bar=False, enable_model_summary=False)
    trainer.fit(model, DataLoader(TensorDataset(x), batch_size=64, shuffle=True, drop_last=True))
    model.eval()
    with torch.no_grad():
        h = model.backbone(x).numpy()
    probe = RidgeClassifier().fit(h[:1200], digits.target[:1200])
    print("metric:", float(probe.score(h[1200:], digits.target[1200:])))
