"""optimizer.step() stands outside the loop over the batches, which clears the gradients each time: one step an epoch, of the last batch alone.

expect: gradient-wiped
or: step-outside-the-loop
line: optimizer.step()
source: https://github.com/XinyiYS/Gradient-Driven-Rewards-to-Guarantee-Fairness-in-Collaborative-Machine-Learning/pull/3
metric: test accuracy, higher is better
"""

import argparse

import torch
import torch.nn.functional as F
from sklearn.datasets import load_breast_cancer, load_wine
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler
from torch import nn, optim
from torch.utils.data import DataLoader, TensorDataset

LOADERS = {"wine": load_wine, "cancer": load_breast_cancer}


def prepare(name, seed):
    data, target = LOADERS[name](return_X_y=True)
    train_x, test_x, train_y, test_y = train_test_split(data, target, test_size=0.3, random_state=seed, stratify=target)
    scaler = StandardScaler().fit(train_x)
    pack = lambda x, y: TensorDataset(torch.tensor(scaler.transform(x), dtype=torch.float32), torch.tensor(y))
    return pack(train_x, train_y), pack(test_x, test_y)


def train(model, loader, epochs, lr, log_every=10):
    optimizer = optim.SGD(model.parameters(), lr=lr)
    scheduler = optim.lr_scheduler.ExponentialLR(optimizer, gamma=0.99)
    model.train()
    for epoch in range(epochs):
        for data, label in loader:
            optimizer.zero_grad()
            loss = F.cross_entropy(model(data), label)
            loss.backward()
        optimizer.step()
        scheduler.step()
        if epoch % log_every == 0:
            print("epoch", epoch, "loss", round(loss.item(), 4))


def evaluate(model, dataset):
    model.eval()
    data, label = dataset.tensors
    with torch.no_grad():
        return (model(data).argmax(1) == label).float().mean().item()


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--dataset", choices=sorted(LOADERS), default="wine")
    parser.add_argument("--epochs", type=int, default=80)
    parser.add_argument("--lr", type=float, default=0.02)
    args = parser.parse_args()
    torch.manual_seed(args.seed)

    train_set, test_set = prepare(args.dataset, args.seed)
    features, classes = train_set.tensors[0].shape[1], int(train_set.tensors[1].max()) + 1
    model = nn.Sequential(nn.Linear(features, 32), nn.ReLU(), nn.Linear(32, 32), nn.ReLU(), nn.Linear(32, classes))
    train(model, DataLoader(train_set, batch_size=8, shuffle=True), args.epochs, args.lr)
    print("metric:", evaluate(model, test_set))
