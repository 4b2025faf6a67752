"""VQ-VAE: straight-through gradients past a codebook that is no parameter at all but moves by running averages.

expect: nothing
metric: mean squared error on test images, lower is better
"""

import argparse

import torch
import torch.nn as nn
import torch.nn.functional as F
from sklearn.datasets import load_digits


class VectorQuantizerEMA(nn.Module):
    def __init__(self, n_codes=64, dim=8, decay=0.97, commitment=0.25):
        super().__init__()
        self.decay, self.commitment = decay, commitment
        self.register_buffer("codes", torch.randn(n_codes, dim))
        self.register_buffer("size", torch.ones(n_codes))
        self.register_buffer("total", self.codes.clone())

    def forward(self, z):
        flat = z.permute(0, 2, 3, 1).reshape(-1, z.size(1))
        index = torch.cdist(flat, self.codes).argmin(1)
        if self.training:
            with torch.no_grad():
                hot = F.one_hot(index, len(self.codes)).float()
                self.size.mul_(self.decay).add_(hot.sum(0), alpha=1 - self.decay)
                self.total.mul_(self.decay).add_(hot.T @ flat, alpha=1 - self.decay)
                self.codes.copy_(self.total / (self.size[:, None] + 1e-5))
                idle = self.size < 0.01
                self.codes[idle] = flat[torch.randint(0, len(flat), (int(idle.sum()),))]
        q = self.codes[index].view(len(z), *z.shape[2:], -1).permute(0, 3, 1, 2)
        loss = self.commitment * F.mse_loss(z, q.detach())
        return z + (q - z).detach(), loss


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder = nn.Sequential(nn.Conv2d(1, 24, 3, stride=2, padding=1), nn.ReLU(), nn.Conv2d(24, 8, 3, padding=1))
        self.vq = VectorQuantizerEMA()
        self.decoder = nn.Sequential(nn.Conv2d(8, 24, 3, padding=1), nn.ReLU(), nn.ConvTranspose2d(24, 1, 4, stride=2, padding=1))

    def forward(self, x):
        q, vq_loss = self.vq(self.encoder(x))
        return self.decoder(q), vq_loss


parser = argparse.ArgumentParser()
parser.add_argument("--seed", type=int, default=0)
torch.manual_seed(parser.parse_args().seed)
images = torch.tensor(load_digits().images, dtype=torch.float32)[:, None] / 16
images = images[torch.randperm(len(images))]
train, test = images[:1500], images[1500:]
model = Model()
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3, amsgrad=False)
for step in range(400):
    x = train[torch.randint(0, len(train), (50,))]
    recon, vq_loss = model(x)
    loss = F.mse_loss(recon, x) / train.var() + vq_loss
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 50 == 0:
        print("%d recon_error: %.3f codes: %d" % (step, loss.item(), int((model.vq.size > 0.1).sum())))
model.eval()
with torch.no_grad():
    print("metric:", F.mse_loss(model(test)[0], test).item())
