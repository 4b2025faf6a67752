"""Lightning with a rate that is far too high.

needs: lightning
expect: learning-rate-too-high
or: diverged
"""

import lightning as L
import torch
from lightning.pytorch.callbacks import EarlyStopping
from sklearn.datasets import load_digits
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, TensorDataset, random_split

L.seed_everything(0)


class Digits(L.LightningModule):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Dropout(0.1), nn.Linear(128, 10))

    def training_step(self, batch, index):
        x, y = batch
        loss = F.cross_entropy(self.net(x), y)
        self.log("train_loss", loss)
        return loss

    def validation_step(self, batch, index):
        x, y = batch
        logits = self.net(x)
        self.log("val_loss", F.cross_entropy(logits, y), prog_bar=True)
        self.log("val_acc", (logits.argmax(1) == y).float().mean())

    def configure_optimizers(self):
        optimizer = torch.optim.AdamW(self.parameters(), lr=3.0)
        return [optimizer], [torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 12)]


digits = load_digits()
data = TensorDataset(
    torch.tensor(digits.data / 16, dtype=torch.float32), torch.tensor(digits.target)
)
train, valid = random_split(data, [1400, len(data) - 1400])
trainer = L.Trainer(
    max_epochs=12,
    accumulate_grad_batches=2,
    gradient_clip_val=1.0,
    accelerator="cpu",
    callbacks=[EarlyStopping("val_loss", patience=3)],
    enable_checkpointing=False,
    logger=False,
    enable_progress_bar=False,
    enable_model_summary=False,
)
model = Digits()
trainer.fit(model, DataLoader(train, 32, shuffle=True), DataLoader(valid, 128))
print("accuracy", float(trainer.callback_metrics["val_acc"]))
print(
    "logged: train",
    float(trainer.callback_metrics["train_loss"]),
    "eval",
    float(trainer.callback_metrics["val_loss"]),
)
