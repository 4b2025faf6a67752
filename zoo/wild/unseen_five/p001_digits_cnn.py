"""A small CNN for digits ends in a softmax, and CrossEntropyLoss takes another one: the loss hangs far above zero.

expect: softmax-before-cross-entropy
or: output-misfits-loss
line: return F.softmax(x, dim=1)
source: https://discuss.pytorch.org/t/cross-entropy-loss-is-not-decreasing/43814/16
metric: test accuracy, higher is better
"""

import argparse

import torch
import torch.nn as nn
import torch.nn.functional as F
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from torch.utils.data import DataLoader, TensorDataset


class Net(nn.Module):
    def __init__(self):
        super(Net, self).__init__()
        self.conv1 = nn.Conv2d(1, 8, 3, padding=1)
        self.conv2 = nn.Conv2d(8, 16, 3, padding=1)
        self.fc1 = nn.Linear(16 * 4 * 4, 64)
        self.fc2 = nn.Linear(64, 10)

    def forward(self, x):
        x = F.relu(self.conv1(x))
        x = F.max_pool2d(F.relu(self.conv2(x)), 2)
        x = x.view(-1, 16 * 4 * 4)
        x = F.relu(self.fc1(x))
        x = self.fc2(x)
        return F.softmax(x, dim=1)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--epochs", type=int, default=8)
    args = parser.parse_args()
    torch.manual_seed(args.seed)

    digits = load_digits()
    images = torch.tensor(digits.images, dtype=torch.float32).unsqueeze(1) / 16.0
    labels = torch.tensor(digits.target)
    tr, te = train_test_split(range(len(labels)), test_size=0.3, random_state=args.seed)
    train_loader = DataLoader(TensorDataset(images[tr], labels[tr]), batch_size=32, shuffle=True)

    net = Net()
    criterion = nn.CrossEntropyLoss()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.03, momentum=0.9)

    for epoch in range(args.epochs):
        running_loss = 0.0
        for data, target in train_loader:
            optimizer.zero_grad()
            loss = criterion(net(data), target)
            loss.backward()
            optimizer.step()
            running_loss += loss.item()
        print("epoch", epoch, "loss =", running_loss / len(train_loader))

    with torch.no_grad():
        acc = (net(images[te]).argmax(1) == labels[te]).float().mean().item()
    print("metric: %.4f" % acc)


if __name__ == "__main__":
    main()
