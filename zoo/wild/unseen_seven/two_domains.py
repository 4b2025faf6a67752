"""Domain-adversarial training: the gradient is reversed by a layer and once more by a gamma of minus ten.

expect: gradient-reversed-twice
or: wrong-sign
line: gamma = -10
source: https://github.com/CuthbertCai/pytorch_DANN/issues/10
metric: accuracy in the target domain, higher is better
"""

import argparse
import math

import torch
import torch.nn as nn
from torch.autograd import Function

gamma = -10
theta = 1


class GradReverse(Function):
    @staticmethod
    def forward(ctx, x, constant):
        ctx.constant = constant
        return x.view_as(x)

    @staticmethod
    def backward(ctx, grad_output):
        grad_output = grad_output.neg() * ctx.constant
        return grad_output, None


class Extractor(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(10, 32), nn.ReLU(), nn.Linear(32, 8))

    def forward(self, x):
        return self.net(x)


class Domain_classifier(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 2))

    def forward(self, x, constant):
        return self.net(GradReverse.apply(x, constant))


def domains(n):
    """Eight weak clues hold everywhere; two strong ones mean something in the source only, and lie elsewhere in the target."""
    y_s, y_t = torch.randint(2, (n,)), torch.randint(2, (n,))
    clues = lambda y: 0.6 * (y.float()[:, None] * 2 - 1) + torch.randn(n, 8)
    strong_s = 1.5 * (y_s.float()[:, None] * 2 - 1) + 0.4 * torch.randn(n, 2)
    strong_t = 1.5 + 0.4 * torch.randn(n, 2)
    return torch.cat([clues(y_s), strong_s], 1), y_s, torch.cat([clues(y_t), strong_t], 1), y_t


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--epochs", type=int, default=30)
    args = parser.parse_args()
    torch.manual_seed(args.seed)
    x_s, y_s, x_t, _ = domains(2000)
    _, _, x_test, y_test = domains(1000)
    extractor, label_net, domain_net = Extractor(), nn.Linear(8, 2), Domain_classifier()
    modules = nn.ModuleList([extractor, label_net, domain_net])
    optimizer = torch.optim.Adam(modules.parameters(), lr=1e-3)
    criterion = nn.CrossEntropyLoss()
    total_steps, step = args.epochs * 40, 0
    for epoch in range(args.epochs):
        for i, j in zip(torch.randperm(2000).split(50), torch.randperm(2000).split(50)):
            p = step / total_steps
            constant = 2.0 / (1.0 + math.exp(-gamma * p)) - 1
            step += 1
            feature_s, feature_t = extractor(x_s[i]), extractor(x_t[j])
            class_loss = criterion(label_net(feature_s), y_s[i])
            domain_preds = torch.cat(
                [domain_net(feature_s, constant), domain_net(feature_t, constant)]
            )
            domain_labels = torch.cat([torch.zeros(len(i)), torch.ones(len(j))]).long()
            domain_loss = criterion(domain_preds, domain_labels)
            loss = class_loss + theta * domain_loss
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        if epoch % 5 == 0:
            print(
                f"[{epoch}] Class Loss: {class_loss.item():.6f}\tDomain Loss: {domain_loss.item():.6f}"
            )
    with torch.no_grad():
        print("metric:", (label_net(extractor(x_test)).argmax(1) == y_test).float().mean().item())


if __name__ == "__main__":
    main()
