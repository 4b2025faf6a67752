"""Lightning with manual optimization: an encoder, a decoder and an adversary on the code, three optimizers in turn.

expect: nothing
style: toggle_optimizer, automatic_optimization off, a data module, losses that balance and do not fall
metric: reconstruction error of test data, lower is better
"""

import argparse
import logging
import warnings

import lightning as L
import torch
import torch.nn as nn
import torch.nn.functional as F
from sklearn.datasets import load_digits
from torch.utils.data import DataLoader, TensorDataset

warnings.filterwarnings("ignore")
logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)


class Digits(L.LightningDataModule):
    def setup(self, stage):
        x = torch.tensor(load_digits().data / 8 - 1, dtype=torch.float)
        x = x[torch.randperm(len(x), generator=torch.Generator().manual_seed(0))]
        self.train, self.test = TensorDataset(x[:1400]), TensorDataset(x[1400:])

    def train_dataloader(self):
        return DataLoader(self.train, batch_size=64, shuffle=True)

    def test_dataloader(self):
        return DataLoader(self.test, batch_size=200)


class AdversarialAutoencoder(L.LightningModule):
    def __init__(self, code=8):
        super().__init__()
        self.automatic_optimization = False
        self.encoder = nn.Sequential(nn.Linear(64, 96), nn.ReLU(), nn.Linear(96, code))
        self.decoder = nn.Sequential(nn.Linear(code, 96), nn.ReLU(), nn.Linear(96, 64))
        self.adversary = nn.Sequential(nn.Linear(code, 48), nn.LeakyReLU(0.2), nn.Linear(48, 1))
        self.code, self.errors = code, []

    def configure_optimizers(self):
        auto = torch.optim.Adam([*self.encoder.parameters(), *self.decoder.parameters()], lr=2e-3)
        adversary = torch.optim.Adam(self.adversary.parameters(), lr=1e-3, betas=(0.5, 0.99))
        fool = torch.optim.Adam(self.encoder.parameters(), lr=3e-4, betas=(0.5, 0.99))
        return auto, adversary, fool

    def update(self, optimizer, loss):
        self.toggle_optimizer(optimizer)
        optimizer.zero_grad()
        self.manual_backward(loss())
        optimizer.step()
        self.untoggle_optimizer(optimizer)

    def training_step(self, batch, batch_idx):
        (x,) = batch
        auto, adversary, fool = self.optimizers()
        one, zero = torch.ones(len(x), 1), torch.zeros(len(x), 1)
        bce = F.binary_cross_entropy_with_logits
        self.update(auto, lambda: F.mse_loss(self.decoder(self.encoder(x)), x))
        prior, seen = torch.randn(len(x), self.code), self.encoder(x).detach()
        self.update(
            adversary, lambda: bce(self.adversary(prior), one) + bce(self.adversary(seen), zero)
        )
        self.update(fool, lambda: bce(self.adversary(self.encoder(x)), one))

    def test_step(self, batch, batch_idx):
        (x,) = batch
        self.errors.append(F.mse_loss(self.decoder(self.encoder(x)), x, reduction="none").mean(1))


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--max-epochs", type=int, default=16)
    args = parser.parse_args()
    L.seed_everything(args.seed, verbose=False)
    model = AdversarialAutoencoder()
    trainer = L.Trainer(
        max_epochs=args.max_epochs,
        accelerator="cpu",
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
    )
    data = Digits()
    trainer.fit(model, data)
    trainer.test(model, data, verbose=False)
    print("metric:", torch.cat(model.errors).mean().item())
