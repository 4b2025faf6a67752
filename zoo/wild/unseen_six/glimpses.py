"""Where to look is to be learned by REINFORCE, but the drawn location keeps its history: in its own log-probability the mean cancels out.

expect: term-without-gradient
or: no-gradient
line: l_t = mu + self.std * torch.randn_like(mu)
source: https://github.com/kevinzakka/recurrent-visual-attention/issues/12
metric: test accuracy, higher is better
"""

import argparse

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.distributions import Normal


class LocationNet(nn.Module):
    """Looks at a blurred picture and says where to look sharply."""

    def __init__(self, std=0.25):
        super().__init__()
        self.std = std
        self.fc = nn.Sequential(nn.Linear(64, 48), nn.ReLU(), nn.Linear(48, 2), nn.Tanh())

    def forward(self, g):
        mu = self.fc(g)
        l_t = mu + self.std * torch.randn_like(mu)
        log_pi = Normal(mu, self.std).log_prob(l_t).sum(1)
        return log_pi, l_t.clamp(-1, 1)


class Retina:
    def __call__(self, images, where, size=5):
        corner = ((where.detach() + 1) / 2 * (images.size(-1) - size)).round().long()
        offset = torch.arange(size)
        rows, cols = corner[:, :1] + offset, corner[:, 1:] + offset
        return images[torch.arange(len(images))[:, None, None], rows[:, :, None], cols[:, None, :]].flatten(1)


def pictures(n, size=32):
    """One of four signs lies somewhere on a faint patch."""
    signs = torch.tensor([[[0, 0, 1, 0, 0]] * 5, [[0] * 5, [0] * 5, [1] * 5, [0] * 5, [0] * 5], torch.eye(5).tolist(), torch.eye(5).flip(0).tolist()]).float()
    images, label = 0.1 * torch.randn(n, size, size), torch.randint(4, (n,))
    at = torch.randint(0, size - 5, (n, 2))
    for i, (y, x) in enumerate(at.tolist()):
        images[i, y : y + 5, x : x + 5] += signs[label[i]]
    return images, label


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--epochs", type=int, default=25)
    args = parser.parse_args()
    torch.manual_seed(args.seed)
    locator, retina = LocationNet(), Retina()
    classifier = nn.Sequential(nn.Linear(25, 32), nn.ReLU(), nn.Linear(32, 4))
    baseliner = nn.Linear(64, 1)
    parameters = [*locator.parameters(), *classifier.parameters(), *baseliner.parameters()]
    optimizer = torch.optim.Adam(parameters, lr=3e-3)
    blur = lambda x: F.avg_pool2d(x.unsqueeze(1), 4).flatten(1) * 4
    x, y = pictures(3000)
    x_test, y_test = pictures(600)
    for epoch in range(args.epochs):
        hits = 0.0
        for idx in torch.randperm(len(x)).split(64):
            log_pi, where = locator(blur(x[idx]))
            logits = classifier(retina(x[idx], where))
            R = (logits.argmax(1) == y[idx]).float()
            b_t = baseliner(blur(x[idx])).squeeze(1)
            loss_action = F.cross_entropy(logits, y[idx])
            loss_baseline = F.mse_loss(b_t, R)
            loss_reinforce = torch.mean(-log_pi * (R - b_t.detach()))
            loss = loss_action + loss_baseline + loss_reinforce
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            hits += R.sum().item()
        if epoch % 5 == 0:
            print("epoch", epoch, "train acc", hits / len(x))
    with torch.no_grad():
        mu = locator.fc(blur(x_test))
        print("metric:", (classifier(retina(x_test, mu)).argmax(1) == y_test).float().mean().item())


if __name__ == "__main__":
    main()
