"""Training with a penalty on correlated features: zero_grad is called before the loop over the data, so the gradients of an epoch pile up.

expect: missing-zero-grad
line: optimizer.zero_grad()
source: https://github.com/salesforce/corr_based_prediction/issues/1
metric: test accuracy, higher is better
"""

import argparse

import torch
import torch.nn as nn
import torch.nn.functional as F
from sklearn.datasets import load_digits
from torch.utils.data import DataLoader, TensorDataset, random_split

parser = argparse.ArgumentParser(description="digits with a correlation penalty")
parser.add_argument("--seed", type=int, default=0)
parser.add_argument("--lr", type=float, default=0.3)
parser.add_argument("--beta", type=float, default=0.01)
parser.add_argument("--epochs", type=int, default=12)
args = parser.parse_args()
torch.manual_seed(args.seed)

data, target = load_digits(return_X_y=True)
full = TensorDataset(torch.tensor(data, dtype=torch.float32) / 16, torch.tensor(target))
trn, tst = random_split(full, [1400, len(full) - 1400])
train_loader = DataLoader(trn, batch_size=16, shuffle=True)
test_loader = DataLoader(tst, batch_size=200)


class MLP(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1 = nn.Linear(64, 50)
        self.fc2 = nn.Linear(50, 50)
        self.fc3 = nn.Linear(50, 10)

    def forward(self, x):
        h = torch.relu(self.fc2(torch.relu(self.fc1(x))))
        return self.fc3(h), h


def corr_loss(h, y):
    """Spread of the features within each class."""
    total = 0.0
    for label in y.unique():
        part = h[y == label]
        total = total + (part - part.mean(0)).pow(2).mean()
    return total / len(y.unique())


model = MLP()
optimizer = torch.optim.SGD(model.parameters(), lr=args.lr)


def train(epoch):
    model.train()
    total_loss = 0
    optimizer.zero_grad()
    for x, t in train_loader:
        out, h = model(x)
        loss = F.cross_entropy(out, t) + args.beta * corr_loss(h, t)
        loss.backward()
        optimizer.step()
        total_loss += loss.item()
    print("epoch", epoch, "loss", total_loss / len(train_loader))


def test():
    model.eval()
    correct = 0
    with torch.no_grad():
        for x, t in test_loader:
            correct += (model(x)[0].argmax(1) == t).sum().item()
    return correct / len(tst)


for epoch in range(args.epochs):
    train(epoch)
print("metric:", test())
