"""Lightning module for a noisy regression with validation, early stopping and ReduceLROnPlateau on the validation loss.

expect: nothing
style: everything by the framework's hooks; no progress bar, no logger, no checkpoint files; early stopping is armed
"""
import argparse
import logging
import warnings

import lightning as L
import torch
from lightning.pytorch.callbacks import EarlyStopping
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)
warnings.filterwarnings("ignore")


class Regressor(L.LightningModule):
    def __init__(self, lr=1e-2):
        super().__init__()
        self.save_hyperparameters()
        self.net = nn.Sequential(nn.Linear(6, 48), nn.SiLU(), nn.Linear(48, 48), nn.SiLU(), nn.Linear(48, 1))

    def forward(self, x):
        return self.net(x).squeeze(-1)

    def training_step(self, batch, batch_idx):
        x, y = batch
        loss = nn.functional.mse_loss(self(x), y)
        self.log("train_loss", loss)
        return loss

    def validation_step(self, batch, batch_idx):
        x, y = batch
        self.log("val_loss", nn.functional.mse_loss(self(x), y))

    def configure_optimizers(self):
        optimizer = torch.optim.Adam(self.parameters(), lr=self.hparams.lr)
        scheduler = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer, mode="min", factor=0.3, patience=3)
        return {"optimizer": optimizer, "lr_scheduler": {"scheduler": scheduler, "monitor": "val_loss"}}


def surface(n):
    x = torch.rand(n, 6) * 2 - 1
    y = torch.sin(3 * x[:, 0]) + x[:, 1] * x[:, 2] * 2 + 0.5 * x[:, 3] + 0.2 * torch.randn(n)
    return TensorDataset(x, y)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    L.seed_everything(parser.parse_args().seed, verbose=False)
    train = DataLoader(surface(1600), batch_size=64, shuffle=True)
    val = DataLoader(surface(400), batch_size=400)
    model = Regressor()
    trainer = L.Trainer(
        max_epochs=22, accelerator="cpu", logger=False, enable_checkpointing=False, enable_progress_bar=False,
        enable_model_summary=False, num_sanity_val_steps=0, log_every_n_steps=5,
        callbacks=[EarlyStopping("val_loss", patience=7)],
    )
    trainer.fit(model, train, val)
    print("epochs:", trainer.current_epoch)
    model.eval()
    x, y = surface(1000).tensors
    with torch.no_grad():
        mse = nn.functional.mse_loss(model(x), y).item()
    print(f"variance {y.var().item():.3f}, noise 0.040")
    print(f"metric: {mse:.4f}")


if __name__ == "__main__":
    main()
