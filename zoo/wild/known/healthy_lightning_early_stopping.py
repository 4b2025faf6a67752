"""A Lightning module with validation, ReduceLROnPlateau and early stopping.

expect: nothing
style: lightning.Trainer, configure_optimizers with a monitored scheduler, EarlyStopping callback
"""

import argparse
import logging
import tempfile

import lightning as L
import torch
import torch.nn.functional as F
from lightning.pytorch.callbacks import EarlyStopping
from sklearn.datasets import make_friedman1
from torch import nn
from torch.utils.data import DataLoader, TensorDataset, random_split

logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)


class FriedmanData(L.LightningDataModule):
    def __init__(self, seed, batch_size=32):
        super().__init__()
        x, y = make_friedman1(1600, n_features=8, noise=0.5, random_state=seed)
        x, y = (x - x.mean(0)) / x.std(0), (y - y.mean()) / y.std()
        data = TensorDataset(torch.tensor(x, dtype=torch.float32), torch.tensor(y, dtype=torch.float32).unsqueeze(1))
        self.splits = random_split(data, [1200, 200, 200], generator=torch.Generator().manual_seed(seed))
        self.batch_size = batch_size

    def train_dataloader(self):
        return DataLoader(self.splits[0], batch_size=self.batch_size, shuffle=True)

    def val_dataloader(self):
        return DataLoader(self.splits[1], batch_size=200)

    def test_dataloader(self):
        return DataLoader(self.splits[2], batch_size=200)


class Regressor(L.LightningModule):
    def __init__(self, hidden=48, lr=5e-3):
        super().__init__()
        self.save_hyperparameters()
        self.net = nn.Sequential(nn.Linear(8, hidden), nn.SiLU(), nn.Linear(hidden, hidden), nn.SiLU(), nn.Linear(hidden, 1))

    def forward(self, x):
        return self.net(x)

    def training_step(self, batch, batch_idx):
        x, y = batch
        return F.mse_loss(self(x), y)

    def validation_step(self, batch, batch_idx):
        x, y = batch
        self.log("val_loss", F.mse_loss(self(x), y))

    def test_step(self, batch, batch_idx):
        x, y = batch
        self.log("test_r2", 1 - F.mse_loss(self(x), y) / y.var())

    def configure_optimizers(self):
        optimizer = torch.optim.AdamW(self.parameters(), lr=self.hparams.lr)
        scheduler = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer, factor=0.3, patience=1)
        return {"optimizer": optimizer, "lr_scheduler": {"scheduler": scheduler, "monitor": "val_loss"}}


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    seed = parser.parse_args().seed
    L.seed_everything(seed, verbose=False)
    data, model = FriedmanData(seed), Regressor()
    with tempfile.TemporaryDirectory() as folder:
        trainer = L.Trainer(
            max_epochs=11, accelerator="cpu", logger=False, enable_checkpointing=False, enable_progress_bar=False,
            enable_model_summary=False, default_root_dir=folder, callbacks=[EarlyStopping("val_loss", patience=4)],
        )
        trainer.fit(model, datamodule=data)
        result = trainer.test(model, datamodule=data, verbose=False)
    print("epochs:", trainer.current_epoch)
    print("metric:", result[0]["test_r2"])
