"""A VQ-VAE: a codebook with straight-through gradients, some codes of which are used by nobody.

expect: nothing
style: stop-gradients on both sides, argmin in the forward, commitment loss
metric: squared error of a reconstructed pixel, lower is better
"""

import argparse

import torch
import torch.nn as nn
import torch.nn.functional as F
from sklearn.datasets import load_digits


class Quantizer(nn.Module):
    def __init__(self, codes=48, dim=8):
        super().__init__()
        self.book = nn.Embedding(codes, dim)
        nn.init.uniform_(self.book.weight, -0.5, 0.5)

    def forward(self, z):
        index = torch.cdist(z, self.book.weight).argmin(-1)
        q = self.book(index)
        loss = F.mse_loss(q, z.detach()) + 0.25 * F.mse_loss(z, q.detach())
        return z + (q - z).detach(), loss, index


class VQVAE(nn.Module):
    def __init__(self, parts=8, dim=8):
        super().__init__()
        self.parts, self.dim = parts, dim
        self.encoder = nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, parts * dim))
        self.quantize = Quantizer(dim=dim)
        self.decoder = nn.Sequential(nn.Linear(parts * dim, 128), nn.ReLU(), nn.Linear(128, 64), nn.Sigmoid())

    def forward(self, x):
        z = self.encoder(x).view(-1, self.dim)
        q, loss, index = self.quantize(z)
        return self.decoder(q.view(len(x), -1)), loss, index


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    torch.manual_seed(parser.parse_args().seed)
    data = torch.tensor(load_digits().data, dtype=torch.float32) / 16
    data = data[torch.randperm(len(data))]
    train, test = data[:1500], data[1500:]
    model = VQVAE()
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
    for epoch in range(25):
        used = set()
        for x in train[torch.randperm(1500)].split(50):
            out, vq, index = model(x)
            recon = F.mse_loss(out, x)
            optimizer.zero_grad()
            (10 * recon + vq).backward()
            optimizer.step()
            used.update(index.tolist())
        if epoch % 5 == 0:
            print("epoch", epoch, "recon", recon.item(), "vq", vq.item(), "codes in use", len(used))
    with torch.no_grad():
        print("metric:", F.mse_loss(model(test)[0], test).item())
