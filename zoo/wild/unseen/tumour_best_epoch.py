"""Keep the weights of the best validation epoch and restore them at the end; the kept weights were a reference to the live ones, so the restore did nothing and the last, overfitted epoch was used.

expect: call-without-effect
line: self.best_model_dict = model.state_dict()
source: https://github.com/WenjieDu/PyPOTS/issues/667
metric: cross entropy on the test set with the restored weights, lower is better
"""
import argparse

import numpy as np
import torch
from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler
from torch import nn


class BestKeeper:
    """Remembers the model that had the lowest validation loss."""

    def __init__(self):
        self.best_loss = float("inf")
        self.best_model_dict = None
        self.best_epoch = -1

    def update(self, epoch, loss, model):
        if loss < self.best_loss:
            self.best_loss = loss
            self.best_epoch = epoch
            self.best_model_dict = model.state_dict()


class Trainer:
    def __init__(self, model, lr=1e-3):
        self.model = model
        self.optimizer = torch.optim.Adam(model.parameters(), lr=lr)
        self.criterion = nn.CrossEntropyLoss()
        self.keeper = BestKeeper()

    def evaluate(self, x, y):
        self.model.eval()
        with torch.no_grad():
            return self.criterion(self.model(x), y).item()

    def fit(self, train_xy, val_xy, epochs):
        x, y = train_xy
        for epoch in range(epochs):
            self.model.train()
            for idx in torch.randperm(len(x)).split(32):
                self.optimizer.zero_grad()
                self.criterion(self.model(x[idx]), y[idx]).backward()
                self.optimizer.step()
            self.keeper.update(epoch, self.evaluate(*val_xy), self.model)
        print("best epoch", self.keeper.best_epoch, "validation loss %.4f" % self.keeper.best_loss)
        self.model.load_state_dict(self.keeper.best_model_dict)
        return self


def load(seed):
    x, y = load_breast_cancer(return_X_y=True)
    rng = np.random.default_rng(seed)
    flip = rng.random(len(y)) < 0.15  # second reader disagrees
    y = np.where(flip, 1 - y, y)
    x_tr, x_te, y_tr, y_te = train_test_split(x, y, test_size=0.6, random_state=seed, stratify=y)
    x_va, x_te, y_va, y_te = train_test_split(x_te, y_te, test_size=0.6, random_state=seed, stratify=y_te)
    scaler = StandardScaler().fit(x_tr)
    as_t = lambda a, b: (torch.tensor(scaler.transform(a), dtype=torch.float32), torch.tensor(b))
    return as_t(x_tr, y_tr), as_t(x_va, y_va), as_t(x_te, y_te)


if __name__ == "__main__":
    p = argparse.ArgumentParser()
    p.add_argument("--seed", type=int, default=0)
    a = p.parse_args()
    torch.manual_seed(a.seed)
    train, val, test = load(a.seed)
    net = nn.Sequential(nn.Linear(30, 128), nn.ReLU(), nn.Linear(128, 64), nn.ReLU(), nn.Linear(64, 2))
    trainer = Trainer(net, lr=2e-3).fit(train, val, epochs=60)
    print("metric: %.4f" % trainer.evaluate(*test))
