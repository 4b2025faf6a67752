"""Class-incremental learning with a replay memory: two new digits at a time, in order, and the loss jumps at every task.

expect: nothing
style: experience replay, growing head, one optimizer per task (looks like unshuffled data, divergence and a stale optimizer)
"""

import argparse

import numpy as np
import torch
import torch.nn.functional as F
from sklearn.datasets import load_digits
from torch import nn


class IncrementalNet(nn.Module):
    def __init__(self, feature_dim=64):
        super().__init__()
        self.convnet = nn.Sequential(nn.Linear(64, 96), nn.ReLU(), nn.Linear(96, feature_dim), nn.ReLU())
        self.fc = None

    def update_fc(self, nb_classes):
        fc = nn.Linear(64, nb_classes)
        if self.fc is not None:
            old = self.fc.out_features
            fc.weight.data[:old] = self.fc.weight.data
            fc.bias.data[:old] = self.fc.bias.data
        self.fc = fc

    def forward(self, x):
        return self.fc(self.convnet(x))


def main(args):
    torch.manual_seed(args.seed)
    rng = np.random.default_rng(args.seed)
    x, y = load_digits(return_X_y=True)
    order = rng.permutation(len(x))
    x, y = (x[order].astype(np.float32) - 4.9) / 6.0, y[order]
    x_train, y_train, x_test, y_test = x[:1300], y[:1300], x[1300:], y[1300:]
    network, memory = IncrementalNet(), []
    for task in range(5):
        classes = [2 * task, 2 * task + 1]
        network.update_fc(2 * task + 2)
        new = [i for i in range(len(y_train)) if y_train[i] in classes]
        pool = np.array(new + memory * 3)
        optimizer = torch.optim.SGD(network.parameters(), lr=0.05, momentum=0.9, weight_decay=2e-4)
        scheduler = torch.optim.lr_scheduler.MultiStepLR(optimizer, [4], gamma=0.1)
        for epoch in range(6):
            network.train()
            losses = []
            for rows in np.array_split(rng.permutation(pool), len(pool) // 25):
                loss = F.cross_entropy(network(torch.from_numpy(x_train[rows])), torch.from_numpy(y_train[rows]))
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
                losses.append(loss.item())
            scheduler.step()
        network.eval()
        seen = y_test < 2 * task + 2
        with torch.no_grad():
            accuracy = (network(torch.from_numpy(x_test[seen])).argmax(1).numpy() == y_test[seen]).mean()
        print("Task %d, loss %.4f, accuracy over %d classes %.4f" % (task, np.mean(losses), 2 * task + 2, accuracy))
        for c in classes:
            memory += [i for i in new if y_train[i] == c][:25]
    print("metric: %.4f" % accuracy)


if __name__ == "__main__":
    p = argparse.ArgumentParser()
    p.add_argument("--seed", type=int, default=0)
    main(p.parse_args())
