"""A small convolutional network with Lightning, in bf16-mixed, its forward called as self(x).

needs: lightning
expect: nothing
"""

import lightning as L
import torch
from sklearn.datasets import load_digits
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

L.seed_everything(0)


class LitCNN(L.LightningModule):
    def __init__(self, lr=1e-3):
        super().__init__()
        self.save_hyperparameters()
        self.features = nn.Sequential(
            nn.Conv2d(1, 16, 3, padding=1),
            nn.BatchNorm2d(16),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Conv2d(16, 32, 3, padding=1),
            nn.BatchNorm2d(32),
            nn.ReLU(),
            nn.AdaptiveAvgPool2d(1),
        )
        self.head = nn.Linear(32, 10)
        self.criterion = nn.CrossEntropyLoss()

    def forward(self, x):
        return self.head(self.features(x).flatten(1))

    def training_step(self, batch, batch_idx):
        x, y = batch
        loss = self.criterion(self(x), y)
        self.log("train_loss", loss)
        return loss

    def validation_step(self, batch, batch_idx):
        x, y = batch
        self.log("val_loss", self.criterion(self(x), y))

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters(), lr=self.hparams.lr)


digits = load_digits()
x = torch.tensor(digits.images / 16, dtype=torch.float32)[:, None]
y = torch.tensor(digits.target)
trainer = L.Trainer(
    max_epochs=6,
    precision="bf16-mixed",
    accelerator="cpu",
    logger=False,
    enable_checkpointing=False,
    enable_progress_bar=False,
    enable_model_summary=False,
)
trainer.fit(
    LitCNN(3e-3),
    DataLoader(TensorDataset(x[:1400], y[:1400]), 64, shuffle=True),
    DataLoader(TensorDataset(x[1400:], y[1400:]), 64),
)
print(
    "logged: train",
    float(trainer.callback_metrics["train_loss"]),
    "eval",
    float(trainer.callback_metrics["val_loss"]),
)
