"""The data module reads the file as it was written, one class after the other, and nobody shuffles.

expect: unshuffled-data
line: return DataLoader(self.train_set, batch_size=self.batch_size)
source: https://github.com/Lightning-Universe/lightning-transformers/issues/298
metric: test accuracy, higher is better
"""

import argparse
import logging
import warnings

import lightning as L
import torch
import torch.nn as nn
import torch.nn.functional as F
from sklearn.datasets import make_classification
from torch.utils.data import DataLoader, TensorDataset

logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)
warnings.filterwarnings("ignore")


class WardData(L.LightningDataModule):
    """Patients as the hospital exports them: ward by ward."""

    def __init__(self, seed, batch_size=20):
        super().__init__()
        self.seed, self.batch_size = seed, batch_size

    def setup(self, stage=None):
        x, y = make_classification(
            3000, 20, n_informative=12, n_redundant=2, n_classes=5, n_clusters_per_class=1, class_sep=1.6, random_state=self.seed
        )
        x, y = torch.tensor(x, dtype=torch.float32), torch.tensor(y)
        x = (x - x.mean(0)) / x.std(0)
        train_x, train_y = x[:2400], y[:2400]
        by_ward = train_y.argsort(stable=True)
        self.train_set = TensorDataset(train_x[by_ward], train_y[by_ward])
        self.test_set = TensorDataset(x[2400:], y[2400:])

    def train_dataloader(self):
        return DataLoader(self.train_set, batch_size=self.batch_size)

    def test_dataloader(self):
        return DataLoader(self.test_set, batch_size=200)


class LitClassifier(L.LightningModule):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(20, 64), nn.ReLU(), nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 5))

    def forward(self, x):
        return self.net(x)

    def training_step(self, batch, batch_idx):
        x, y = batch
        loss = F.cross_entropy(self(x), y)
        self.log("train_loss", loss)
        return loss

    def test_step(self, batch, batch_idx):
        x, y = batch
        self.log("test_acc", (self(x).argmax(1) == y).float().mean())

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters(), lr=3e-3)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    seed = parser.parse_args().seed
    L.seed_everything(seed, verbose=False)
    data, model = WardData(seed), LitClassifier()
    trainer = L.Trainer(
        max_epochs=4, accelerator="cpu", logger=False, enable_checkpointing=False, enable_progress_bar=False, enable_model_summary=False
    )
    trainer.fit(model, data)
    result = trainer.test(model, data, verbose=False)
    print("metric:", result[0]["test_acc"])
