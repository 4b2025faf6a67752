"""The KL term is a sum over the batch, the reconstruction a mean over everything: KL wins at once and every output is the same.

expect: unbalanced-loss-terms
line: kl_loss = -0.5 * torch.sum(
source: https://github.com/zdebruine/MMVAE/pull/19
metric: reconstruction error per pixel relative to the variance, lower is better
"""

import argparse

import lightning as L
import torch
import torch.nn.functional as F
from sklearn.datasets import load_digits
from torch import nn
from torch.utils.data import DataLoader


class VAE(L.LightningModule):
    def __init__(self, latent=8, lr=3e-3):
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(64, 64), nn.ReLU())
        self.fc_mu = nn.Linear(64, latent)
        self.fc_var = nn.Linear(64, latent)
        self.decoder = nn.Sequential(nn.Linear(latent, 64), nn.ReLU(), nn.Linear(64, 64))
        self.lr = lr

    def forward(self, x):
        h = self.encoder(x)
        mu, logvar = self.fc_mu(h), self.fc_var(h)
        z = mu + torch.randn_like(mu) * (0.5 * logvar).exp() if self.training else mu
        return self.decoder(z), mu, logvar

    def training_step(self, batch, batch_idx):
        predicted, mu, logvar = self(batch)
        recon_loss = F.mse_loss(predicted, batch)
        kl_loss = -0.5 * torch.sum(1 + logvar - mu.pow(2) - logvar.exp())
        loss = recon_loss + kl_loss
        if batch_idx == 0:
            print("recon %.4f kl %.4f" % (recon_loss.item(), kl_loss.item()))
        return loss

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters(), lr=self.lr)


def main(seed):
    L.seed_everything(seed, verbose=False)
    data = torch.tensor(load_digits().data, dtype=torch.float32)
    data = (data - 4.9) / 6.0
    data = data[torch.randperm(len(data))]
    train, test = data[:1500], data[1500:]
    vae = VAE()
    trainer = L.Trainer(
        max_epochs=12, accelerator="cpu", logger=False, enable_checkpointing=False, enable_progress_bar=False, enable_model_summary=False
    )
    trainer.fit(vae, DataLoader(train, batch_size=64, shuffle=True))
    vae.eval()
    with torch.no_grad():
        recon = vae(test)[0]
    # 1 would be the mean image
    print("metric: %.4f" % (F.mse_loss(recon, test) / (test - train.mean(0)).pow(2).mean()).item())


if __name__ == "__main__":
    ap = argparse.ArgumentParser()
    ap.add_argument("--seed", type=int, default=0)
    main(ap.parse_args().seed)
