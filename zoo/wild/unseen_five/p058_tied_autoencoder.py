"""A denoising autoencoder whose decoder is the transpose of its encoder.

expect: nothing
style: one weight used twice through F.linear, target is the clean input
metric: squared error relative to the noisy picture's, lower is better
"""

import argparse

import torch
import torch.nn as nn
import torch.nn.functional as F
from sklearn.datasets import load_digits


class TiedAE(nn.Module):
    def __init__(self, sizes=(64, 96, 24)):
        super().__init__()
        self.weights = nn.ParameterList([nn.Parameter(torch.randn(b, a) / a**0.5) for a, b in zip(sizes, sizes[1:])])
        self.encode_bias = nn.ParameterList([nn.Parameter(torch.zeros(b)) for b in sizes[1:]])
        self.decode_bias = nn.ParameterList([nn.Parameter(torch.zeros(a)) for a in sizes[:-1]])

    def forward(self, x):
        for i, (w, b) in enumerate(zip(self.weights, self.encode_bias)):
            x = F.linear(x, w, b)
            if i == 0:
                x = F.relu(x)
        for i in reversed(range(len(self.weights))):
            x = F.linear(x, self.weights[i].T, self.decode_bias[i])
            if i:
                x = F.relu(x)
        return torch.sigmoid(x)


def corrupt(x):
    return x + 0.25 * torch.randn_like(x)


def run(seed):
    torch.manual_seed(seed)
    data = torch.tensor(load_digits().data, dtype=torch.float32) / 16
    data = data[torch.randperm(len(data))]
    train, test = data[:1500], data[1500:]
    model = TiedAE()
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
    for epoch in range(30):
        for x in train[torch.randperm(len(train))].split(50):
            loss = F.binary_cross_entropy(model(corrupt(x)), x)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        if epoch % 6 == 0:
            print("epoch", epoch, "bce", loss.item())
    with torch.no_grad():
        noisy = corrupt(test)
        return (F.mse_loss(model(noisy), test) / F.mse_loss(noisy, test)).item()


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    print("metric:", run(parser.parse_args().seed))
