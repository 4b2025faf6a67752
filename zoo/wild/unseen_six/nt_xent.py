"""Contrastive pretraining of an encoder on two noisy views of digits, then a linear probe on frozen features.

expect: nothing
style: NT-Xent, projection head thrown away, sklearn's logistic regression on the features
metric: accuracy of the linear probe, higher is better
"""

import argparse

import torch
import torch.nn as nn
import torch.nn.functional as F
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression


def view(x):
    """Shift, scale and noise."""
    dy, dx = torch.randint(0, 3, (2,)).tolist()
    x = F.pad(x, (1, 1, 1, 1))[:, :, dy : dy + 8, dx : dx + 8]
    return x * (0.7 + 0.6 * torch.rand(len(x), 1, 1, 1)) + 0.1 * torch.randn_like(x)


def nt_xent(z1, z2, temperature=0.5):
    z = F.normalize(torch.cat([z1, z2]), dim=1)
    similarity = z @ z.T / temperature
    similarity.fill_diagonal_(-1e9)
    n = len(z1)
    return F.cross_entropy(similarity, torch.cat([torch.arange(n, 2 * n), torch.arange(n)]))


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--epochs", type=int, default=25)
    args = parser.parse_args()
    torch.manual_seed(args.seed)
    digits = load_digits()
    x = torch.tensor(digits.images, dtype=torch.float32).unsqueeze(1) / 16
    encoder = nn.Sequential(nn.Conv2d(1, 16, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(16, 32, 3, padding=1), nn.ReLU(), nn.Flatten())
    projector = nn.Sequential(nn.Linear(512, 64), nn.ReLU(), nn.Linear(64, 32))
    optimizer = torch.optim.Adam([*encoder.parameters(), *projector.parameters()], lr=1e-3)
    for epoch in range(args.epochs):
        for idx in torch.randperm(len(x)).split(128):
            loss = nt_xent(projector(encoder(view(x[idx]))), projector(encoder(view(x[idx]))))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        print("epoch", epoch, "contrastive loss", loss.item())
    encoder.eval()
    with torch.no_grad():
        features = encoder(x).numpy()
    probe = LogisticRegression(max_iter=500).fit(features[:300], digits.target[:300])
    print("metric:", probe.score(features[300:], digits.target[300:]))
