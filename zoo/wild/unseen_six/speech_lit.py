"""A Lightning port with OneCycleLR counts the samples as steps of an epoch: the rate is still warming up when training ends.

expect: schedule-too-long
or: learning-rate-too-low
line: steps_per_epoch=len(self.train_dataset)
source: https://github.com/Lightning-AI/pytorch-lightning/issues/2643
metric: test accuracy, higher is better
"""

import argparse
import logging
import warnings

import lightning as L
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset

warnings.filterwarnings("ignore")
logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)


def tones(n, classes=8, length=40):
    """Short sounds; the class is the pitch."""
    y = torch.randint(classes, (n,))
    t = torch.arange(length)
    phase = torch.rand(n, 1) * 6.28
    x = torch.sin(t * (0.3 + 0.12 * y[:, None]) + phase) + 0.7 * torch.randn(n, length)
    return TensorDataset(x.unsqueeze(1), y)


class SpeechModule(L.LightningModule):
    def __init__(self, hparams, train_dataset):
        super().__init__()
        self.args, self.train_dataset = hparams, train_dataset
        self.cnn = nn.Sequential(nn.Conv1d(1, 16, 7, padding=3), nn.GELU(), nn.Conv1d(16, 16, 5, stride=2, padding=2), nn.GELU())
        self.rnn = nn.GRU(16, 24, batch_first=True, bidirectional=True)
        self.classifier = nn.Linear(48, 8)

    def forward(self, x):
        h, _ = self.rnn(self.cnn(x).transpose(1, 2))
        return self.classifier(h.mean(1))

    def training_step(self, batch, batch_idx):
        x, y = batch
        return F.cross_entropy(self(x), y)

    def test_step(self, batch, batch_idx):
        x, y = batch
        self.log("test_acc", (self(x).argmax(1) == y).float().mean())

    def configure_optimizers(self):
        optimizer = torch.optim.AdamW(self.parameters(), self.args.learning_rate)
        scheduler = torch.optim.lr_scheduler.OneCycleLR(
            optimizer,
            max_lr=self.args.learning_rate,
            steps_per_epoch=len(self.train_dataset),
            epochs=self.args.epochs,
            anneal_strategy="linear",
        )
        return [optimizer], [{"scheduler": scheduler, "interval": "step"}]


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--learning_rate", type=float, default=3e-3)
    parser.add_argument("--batch_size", type=int, default=32)
    parser.add_argument("--epochs", type=int, default=5)
    args = parser.parse_args()
    L.seed_everything(args.seed, verbose=False)
    train_set, test_set = tones(1600), tones(500)
    module = SpeechModule(args, train_set)
    trainer = L.Trainer(max_epochs=args.epochs, logger=False, enable_checkpointing=False, enable_progress_bar=False, enable_model_summary=False, accelerator="cpu")
    trainer.fit(module, DataLoader(train_set, batch_size=args.batch_size, shuffle=True))
    result = trainer.test(module, DataLoader(test_set, batch_size=500), verbose=False)
    print("metric:", result[0]["test_acc"])
