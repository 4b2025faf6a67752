"""A Lightning module with manual optimization: encoder and decoder of a denoising autoencoder have optimizers of their own.

expect: nothing
style: LightningModule, automatic_optimization = False, two optimizers and a scheduler stepped by hand
metric: squared error of cleaned test images, lower is better
"""

import argparse
import logging
import warnings

import lightning as L
import torch
import torch.nn as nn
from sklearn.datasets import load_digits
from torch.utils.data import DataLoader, TensorDataset

warnings.filterwarnings("ignore")
logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)


class Denoiser(L.LightningModule):
    def __init__(self, code=24):
        super().__init__()
        self.automatic_optimization = False
        self.encoder = nn.Sequential(nn.Linear(64, 96), nn.ReLU(), nn.Linear(96, code))
        self.decoder = nn.Sequential(nn.Linear(code, 96), nn.ReLU(), nn.Linear(96, 64), nn.Sigmoid())

    def forward(self, x):
        return self.decoder(self.encoder(x))

    def training_step(self, batch, batch_idx):
        (clean,) = batch
        opt_enc, opt_dec = self.optimizers()
        loss = (self(clean + 0.2 * torch.randn_like(clean)) - clean).pow(2).sum(1).mean()
        opt_enc.zero_grad()
        opt_dec.zero_grad()
        self.manual_backward(loss)
        opt_enc.step()
        opt_dec.step()
        self.log("train_loss", loss)

    def on_train_epoch_end(self):
        self.lr_schedulers().step()

    def configure_optimizers(self):
        enc = torch.optim.Adam(self.encoder.parameters(), lr=2e-3)
        dec = torch.optim.AdamW(self.decoder.parameters(), lr=2e-3, weight_decay=1e-4)
        return [enc, dec], [torch.optim.lr_scheduler.StepLR(enc, 10, 0.5)]


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    L.seed_everything(args.seed, verbose=False)
    x = torch.tensor(load_digits().data, dtype=torch.float32) / 16
    x = x[torch.randperm(len(x))]
    model = Denoiser()
    trainer = L.Trainer(max_epochs=20, logger=False, enable_checkpointing=False, enable_progress_bar=False, enable_model_summary=False, accelerator="cpu")
    trainer.fit(model, DataLoader(TensorDataset(x[:1400]), batch_size=32, shuffle=True))
    model.eval()
    with torch.no_grad():
        test = x[1400:]
        print("metric:", (model(test + 0.2 * torch.randn_like(test)) - test).pow(2).sum(1).mean().item())
