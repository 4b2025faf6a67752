"""I took the weight decay of 10 that worked with Adam in another library over to AdamW: weights melt faster than they learn.

expect: weight-decay-too-strong
line: weight_decay=10.0
source: https://github.com/tflearn/tflearn/issues/772
metric: test accuracy, higher is better
"""

import argparse

import lightning.pytorch as pl
import torch
from sklearn.datasets import load_digits
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, TensorDataset


class DNN(pl.LightningModule):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10))

    def forward(self, x):
        return self.net(x)

    def training_step(self, batch, batch_idx):
        x, y = batch
        return F.cross_entropy(self(x), y)

    def test_step(self, batch, batch_idx):
        x, y = batch
        self.log("test_acc", (self(x).argmax(1) == y).float().mean())

    def configure_optimizers(self):
        return torch.optim.AdamW(self.parameters(), lr=3e-3, weight_decay=10.0)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    pl.seed_everything(parser.parse_args().seed, verbose=False)
    x, y = load_digits(return_X_y=True)
    order = torch.randperm(len(x))
    x = torch.tensor((x - 4.9) / 6.0, dtype=torch.float32)[order]
    y = torch.tensor(y)[order]
    trainer = pl.Trainer(
        max_epochs=5, accelerator="cpu", logger=False, enable_checkpointing=False, enable_progress_bar=False, enable_model_summary=False
    )
    model = DNN()
    trainer.fit(model, DataLoader(TensorDataset(x[:1300], y[:1300]), batch_size=32, shuffle=True))
    result = trainer.test(model, DataLoader(TensorDataset(x[1300:], y[1300:]), batch_size=500), verbose=False)
    print("metric:", result[0]["test_acc"])


if __name__ == "__main__":
    main()
