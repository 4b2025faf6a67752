"""Super-resolution of digits with a perceptual loss; the frozen critic net hides in a plain list on purpose.

expect: nothing
style: invites 'unregistered layers' and 'optimizer misses parameters': the loss net is trained beforehand, lies in a list so that it is neither saved nor trained nor put in train mode with the generator, and only passes gradients on
"""
import argparse

import torch
import torch.nn as nn
import torch.nn.functional as F
from sklearn.datasets import load_digits


class FeatureNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.c1, self.c2 = nn.Conv2d(1, 12, 3, padding=1), nn.Conv2d(12, 24, 3, padding=1)
        self.fc = nn.Linear(24 * 4, 10)

    def features(self, x):
        f1 = F.relu(self.c1(x))
        return f1, F.relu(self.c2(F.max_pool2d(f1, 2)))

    def forward(self, x):
        return self.fc(F.max_pool2d(self.features(x)[1], 2).flatten(1))


class SuperResolver(nn.Module):
    def __init__(self, feature_net, width=24):
        super().__init__()
        self.head = nn.Conv2d(1, width, 3, padding=1)
        self.body = nn.ModuleList(nn.Conv2d(width, width, 3, padding=1) for _ in range(2))
        self.up = nn.Sequential(nn.Conv2d(width, 4, 3, padding=1), nn.PixelShuffle(2))
        # in a list: must not turn up in parameters(), state_dict() or train()
        self._critic = [feature_net.eval().requires_grad_(False)]

    def forward(self, small):
        x = F.relu(self.head(small))
        for conv in self.body:
            x = x + F.relu(conv(x))
        return F.interpolate(small, scale_factor=2, mode="bilinear", align_corners=False) + self.up(x)

    def loss(self, out, target):
        critic = self._critic[0]
        perceptual = sum(F.mse_loss(a, b) for a, b in zip(critic.features(out), critic.features(target)))
        return F.l1_loss(out, target) + 0.1 * perceptual


def main(args):
    torch.manual_seed(args.seed)
    d = load_digits()
    big = torch.tensor(d.images[:, None] / 8.0 - 1.0, dtype=torch.float32)
    labels = torch.tensor(d.target)
    perm = torch.randperm(len(big))
    big, labels = big[perm], labels[perm]
    small = F.avg_pool2d(big, 2)
    n = 1400

    critic = FeatureNet()
    opt = torch.optim.Adam(critic.parameters(), lr=3e-3)
    for epoch in range(5):
        for idx in torch.randperm(n).split(64):
            loss = F.cross_entropy(critic(big[idx]), labels[idx])
            opt.zero_grad()
            loss.backward()
            opt.step()
    with torch.no_grad():
        print("critic accuracy %.4f" % (critic(big[n:]).argmax(1) == labels[n:]).float().mean().item())

    model = SuperResolver(critic)
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 7, 0.3)
    for epoch in range(args.epochs):
        model.train()
        for idx in torch.randperm(n).split(64):
            loss = model.loss(model(small[idx]), big[idx])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        scheduler.step()
        if epoch % 3 == 2:
            model.eval()
            with torch.no_grad():
                test = model.loss(model(small[n:]), big[n:]).item()
            print("epoch %d train %.4f test %.4f" % (epoch + 1, loss.item(), test))

    model.eval()
    psnr = lambda a, b: 10 * torch.log10(4 / ((a - b) ** 2).mean()).item()
    with torch.no_grad():
        out = model(small[n:])
    print("bilinear %.2f dB" % psnr(F.interpolate(small[n:], scale_factor=2, mode="bilinear", align_corners=False), big[n:]))
    print("metric: %.3f" % psnr(out, big[n:]))


if __name__ == "__main__":
    ap = argparse.ArgumentParser()
    ap.add_argument("--seed", type=int, default=0)
    ap.add_argument("--epochs", type=int, default=15)
    main(ap.parse_args())
