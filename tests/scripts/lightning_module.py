"""A LightningModule and a Trainer."""

import logging
import warnings

import lightning as L
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from utils import blobs, checksum

warnings.filterwarnings("ignore")
logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)


class LitClassifier(L.LightningModule):
    def __init__(self):
        super().__init__()
        self.backbone = nn.Sequential(nn.Linear(8, 16), nn.ReLU())
        self.head = nn.Linear(16, 4)
        self.criterion = nn.CrossEntropyLoss()
        self.seen = []

    def training_step(self, batch, _):
        x, y = batch
        loss = self.criterion(self.head(self.backbone(x)), y)
        self.log("train_loss", loss)
        self.seen.append(loss.item())
        return loss

    def validation_step(self, batch, _):
        x, y = batch
        self.log("val_loss", self.criterion(self.head(self.backbone(x)), y))

    def configure_optimizers(self):
        optimizer = torch.optim.Adam(self.parameters(), lr=0.01)
        return [optimizer], [torch.optim.lr_scheduler.StepLR(optimizer, 1, 0.5)]


if __name__ == "__main__":
    L.seed_everything(10, verbose=False)
    x, y = blobs(128)
    train = DataLoader(TensorDataset(x[:96], y[:96]), batch_size=16, shuffle=True)
    valid = DataLoader(TensorDataset(x[96:], y[96:]), batch_size=16)
    model = LitClassifier()
    trainer = L.Trainer(
        max_epochs=2,
        accelerator="cpu",
        gradient_clip_val=1.0,
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
    )
    trainer.fit(model, train, valid)
    print(" ".join(f"{value:.6f}" for value in model.seen))
    print(f"validation {trainer.callback_metrics['val_loss'].item():.6f}")
    print("weights", checksum(model))
