"""The loss of a client is the exponential of its cross entropy; one confident mistake makes it infinite, and the weights become NaN.

expect: non-finite
or: exploding-gradient
line: loss = torch.exp(criterion(output, target) / eta)
source: https://whosebug.com/question/6301115/Weird-behaviour-of-loss-function-in-pytorch
metric: test accuracy, higher is better
"""

import argparse

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def make_clients(n_clients, n, g):
    centers = 2.0 * torch.randn(6, 16, generator=g)
    clients = []
    for _ in range(n_clients):
        y = torch.randint(6, (n,), generator=g)
        x = 4.0 * (centers[y] + torch.randn(n, 16, generator=g))
        clients.append(DataLoader(TensorDataset(x, y), batch_size=10, shuffle=True))
    y = torch.randint(6, (600,), generator=g)
    return clients, (4.0 * (centers[y] + torch.randn(600, 16, generator=g)), y)


parser = argparse.ArgumentParser()
parser.add_argument("--seed", type=int, default=0)
args = parser.parse_args()
torch.manual_seed(args.seed)
clients, (x_test, y_test) = make_clients(4, 200, torch.Generator().manual_seed(args.seed))

eta = 0.1
criterion = nn.CrossEntropyLoss()
client_model = nn.Sequential(nn.Linear(16, 64), nn.ReLU(), nn.Linear(64, 6))
optimizer = torch.optim.SGD(client_model.parameters(), lr=0.01)

for e in range(6):
    train_loss, count = 0.0, 0
    for train_loader in clients:
        client_model.train()
        for data, target in train_loader:
            optimizer.zero_grad()
            output = client_model(data)
            loss = torch.exp(criterion(output, target) / eta)  # the tilted risk
            loss.backward()
            optimizer.step()
            train_loss += loss.item() * data.size(0)
            count += data.size(0)
    print("round", e, "loss", train_loss / count)

client_model.eval()
with torch.no_grad():
    acc = (client_model(x_test).argmax(1) == y_test).float().mean()
print("metric: %.4f" % acc)
