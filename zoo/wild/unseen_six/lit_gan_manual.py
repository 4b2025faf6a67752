"""A Lightning module with manual optimization of two optimizers: a GAN on a ring of points.

expect: nothing
style: LightningModule, automatic_optimization = False, toggle_optimizer, loss in logits
metric: mean distance of samples to the ring, lower is better
"""

import argparse
import logging
import math
import warnings

import lightning as L
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset

warnings.filterwarnings("ignore")
logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)


class RingGAN(L.LightningModule):
    def __init__(self, latent=8):
        super().__init__()
        self.automatic_optimization = False
        self.latent = latent
        self.generator = nn.Sequential(nn.Linear(latent, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 2))
        self.discriminator = nn.Sequential(nn.Linear(2, 64), nn.LeakyReLU(0.2), nn.Linear(64, 64), nn.LeakyReLU(0.2), nn.Linear(64, 1))

    def training_step(self, batch, batch_idx):
        (real,) = batch
        opt_g, opt_d = self.optimizers()
        z = torch.randn(len(real), self.latent)

        self.toggle_optimizer(opt_d)
        real_logits, fake_logits = self.discriminator(real), self.discriminator(self.generator(z).detach())
        d_loss = F.softplus(-real_logits).mean() + F.softplus(fake_logits).mean()
        opt_d.zero_grad()
        self.manual_backward(d_loss)
        opt_d.step()
        self.untoggle_optimizer(opt_d)

        self.toggle_optimizer(opt_g)
        g_loss = F.softplus(-self.discriminator(self.generator(z))).mean()
        opt_g.zero_grad()
        self.manual_backward(g_loss)
        opt_g.step()
        self.untoggle_optimizer(opt_g)
        self.log_dict({"d_loss": d_loss, "g_loss": g_loss})

    def configure_optimizers(self):
        adam = lambda net, lr: torch.optim.Adam(net.parameters(), lr=lr, betas=(0.5, 0.99))
        return [adam(self.generator, 1e-3), adam(self.discriminator, 1e-3)], []


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    L.seed_everything(args.seed, verbose=False)
    angle = torch.rand(6400) * 2 * math.pi
    ring = torch.stack([angle.cos(), angle.sin()], 1) * 1.5 + 0.05 * torch.randn(6400, 2)
    model = RingGAN()
    trainer = L.Trainer(max_epochs=14, logger=False, enable_checkpointing=False, enable_progress_bar=False, enable_model_summary=False, accelerator="cpu")
    trainer.fit(model, DataLoader(TensorDataset(ring), batch_size=128, shuffle=True))
    with torch.no_grad():
        samples = model.generator(torch.randn(2000, 8))
    print("metric:", (samples.norm(dim=1) - 1.5).abs().mean().item())
