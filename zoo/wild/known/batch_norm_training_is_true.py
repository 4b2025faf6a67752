"""My functional batch norm passes training=True whatever the mode is, so a prediction depends on who else is in the batch.

expect: train-mode-evaluation
line: training=True
source: https://github.com/AntreasAntoniou/HowToTrainYourMAMLPytorch/issues/3
metric: accuracy on test batches that come class by class, higher is better
"""

import argparse

import torch
import torch.nn as nn
import torch.nn.functional as F
from sklearn.datasets import load_digits


class MetaBatchNormLayer(nn.Module):
    def __init__(self, num_features, momentum=0.1, eps=1e-5):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(num_features))
        self.bias = nn.Parameter(torch.zeros(num_features))
        self.register_buffer("running_mean", torch.zeros(num_features))
        self.register_buffer("running_var", torch.ones(num_features))
        self.momentum, self.eps = momentum, eps

    def forward(self, x):
        return F.batch_norm(
            x, self.running_mean, self.running_var, self.weight, self.bias, training=True, momentum=self.momentum, eps=self.eps
        )


class VGGNetwork(nn.Module):
    def __init__(self, num_classes):
        super().__init__()
        self.conv0 = nn.Conv2d(1, 16, 3, padding=1)
        self.norm0 = MetaBatchNormLayer(16)
        self.conv1 = nn.Conv2d(16, 16, 3, padding=1)
        self.norm1 = MetaBatchNormLayer(16)
        self.fc = nn.Linear(64, 32)
        self.norm2 = MetaBatchNormLayer(32)
        self.linear = nn.Linear(32, num_classes)

    def forward(self, x):
        x = F.max_pool2d(F.leaky_relu(self.norm0(self.conv0(x))), 2)
        x = F.max_pool2d(F.leaky_relu(self.norm1(self.conv1(x))), 2)
        return self.linear(F.leaky_relu(self.norm2(self.fc(x.flatten(1)))))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--total_epochs", type=int, default=5)
    args = parser.parse_args()
    torch.manual_seed(args.seed)
    x, y = load_digits(return_X_y=True)
    x = torch.tensor((x - 4.9) / 6.0, dtype=torch.float32).view(-1, 1, 8, 8)
    y = torch.tensor(y)
    order = torch.randperm(len(x))
    train, test = order[:1300], order[1300:]

    model = VGGNetwork(10)
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    for epoch in range(args.total_epochs):
        model.train()
        total = 0.0
        for rows in train[torch.randperm(len(train))].split(32):
            loss = F.cross_entropy(model(x[rows]), y[rows])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item() * len(rows) / len(train)
        print("epoch", epoch, "train_loss", round(total, 4))

    model.eval()
    hits = 0
    with torch.no_grad():
        for digit in range(10):
            rows = test[y[test] == digit]
            hits += (model(x[rows]).argmax(1) == digit).sum().item()
    print("metric:", round(hits / len(test), 4))


if __name__ == "__main__":
    main()
