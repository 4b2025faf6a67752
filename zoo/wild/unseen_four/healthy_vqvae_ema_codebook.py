"""VQ-VAE on digits: straight-through quantisation, codebook moved by moving averages and not by the optimizer.

expect: nothing
style: codebook is a buffer updated without gradients on purpose, perplexity is only logged, target is the input
"""
import argparse

import torch
import torch.nn as nn
import torch.nn.functional as F
from sklearn.datasets import load_digits


class VectorQuantizerEMA(nn.Module):
    def __init__(self, n_codes, dim, decay=0.95, commitment=0.25, eps=1e-5):
        super().__init__()
        self.decay, self.commitment, self.eps = decay, commitment, eps
        codes = torch.randn(n_codes, dim)
        self.register_buffer("codes", codes)
        self.register_buffer("cluster_size", torch.ones(n_codes))
        self.register_buffer("sums", codes.clone())

    def forward(self, z):  # B, C, H, W
        flat = z.permute(0, 2, 3, 1).reshape(-1, z.size(1))
        idx = torch.cdist(flat, self.codes).argmin(1)
        quantised = self.codes[idx].view(z.size(0), z.size(2), z.size(3), -1).permute(0, 3, 1, 2)
        if self.training:
            with torch.no_grad():
                onehot = F.one_hot(idx, len(self.codes)).type_as(flat)
                self.cluster_size.lerp_(onehot.sum(0), 1 - self.decay)
                self.sums.lerp_(onehot.T @ flat, 1 - self.decay)
                n = self.cluster_size.sum()
                size = (self.cluster_size + self.eps) / (n + len(self.codes) * self.eps) * n
                self.codes.copy_(self.sums / size[:, None])
                dead = self.cluster_size < 0.05  # unused codes restart at a random encoder output
                if dead.any():
                    fresh = flat[torch.randint(0, len(flat), (int(dead.sum()),))]
                    self.codes[dead], self.sums[dead] = fresh, fresh
                    self.cluster_size[dead] = 1.0
        loss = self.commitment * F.mse_loss(z, quantised.detach())
        straight = z + (quantised - z).detach()
        probs = torch.bincount(idx, minlength=len(self.codes)).float() / len(idx)
        perplexity = torch.exp(-(probs * (probs + 1e-10).log()).sum())
        return straight, loss, perplexity


class VQVAE(nn.Module):
    def __init__(self, dim=8, n_codes=64, ch=32):
        super().__init__()
        self.encoder = nn.Sequential(
            nn.Conv2d(1, ch, 3, padding=1), nn.ReLU(), nn.Conv2d(ch, ch, 4, stride=2, padding=1), nn.ReLU(),
            nn.Conv2d(ch, dim, 1))
        self.vq = VectorQuantizerEMA(n_codes, dim)
        self.decoder = nn.Sequential(
            nn.Conv2d(dim, ch, 3, padding=1), nn.ReLU(),
            nn.ConvTranspose2d(ch, ch, 4, stride=2, padding=1), nn.ReLU(), nn.Conv2d(ch, 1, 3, padding=1))

    def forward(self, x):
        z, vq_loss, perplexity = self.vq(self.encoder(x))
        return self.decoder(z), vq_loss, perplexity


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    torch.manual_seed(args.seed)
    x = torch.tensor(load_digits().images, dtype=torch.float32)[:, None] / 16.0 - 0.5
    x = x[torch.randperm(len(x))]
    train, test = x[:1500], x[1500:]
    variance = train.var()
    model = VQVAE()
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
    for epoch in range(20):
        model.train()
        for idx in torch.randperm(len(train)).split(64):
            recon, vq_loss, perplexity = model(train[idx])
            recon_loss = F.mse_loss(recon, train[idx]) / variance
            loss = recon_loss + vq_loss
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        if epoch % 4 == 3:
            model.eval()
            with torch.no_grad():
                error = F.mse_loss(model(test)[0], test) / variance
            print(f"epoch {epoch + 1} recon {recon_loss.item():.4f} vq {vq_loss.item():.4f} "
                  f"perplexity {perplexity.item():.1f} test {error.item():.4f}")
    print(f"metric: {error.item():.4f}")
