"""The features are standardised for training, but the validation features are left as they are.

expect: evaluation-scale
line: x_val = torch.tensor(X_val
source: https://github.com/nttcslab/byol-a/issues/5
metric: validation accuracy, higher is better
"""
import argparse
import logging

import torch
import torch.nn as nn
from sklearn.datasets import load_wine, make_classification
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler

logging.basicConfig(level=logging.INFO, format="%(message)s")


class TorchMLPClassifier:
    def __init__(self, hidden=(64,), lr=2e-3, max_iter=20, batch_size=32):
        self.hidden, self.lr, self.max_iter, self.batch_size = hidden, lr, max_iter, batch_size

    def build(self, n_in, n_out):
        sizes = [n_in, *self.hidden]
        layers = []
        for a, b in zip(sizes, sizes[1:]):
            layers += [nn.Linear(a, b), nn.ReLU()]
        return nn.Sequential(*layers, nn.Linear(sizes[-1], n_out))

    def fit(self, x, y, x_val, y_val):
        self.model = self.build(x.shape[1], int(y.max()) + 1)
        optimizer = torch.optim.Adam(self.model.parameters(), lr=self.lr)
        loss_fn = nn.CrossEntropyLoss()
        for epoch in range(self.max_iter):
            self.model.train()
            for idx in torch.randperm(len(x)).split(self.batch_size):
                optimizer.zero_grad()
                loss = loss_fn(self.model(x[idx]), y[idx])
                loss.backward()
                optimizer.step()
            self.model.eval()
            with torch.no_grad():
                val_loss = loss_fn(self.model(x_val), y_val).item()
            logging.info("epoch %d loss %.4f val loss %.4f val acc %.4f",
                         epoch, loss.item(), val_loss, self.score(x_val, y_val))
        return self

    @torch.no_grad()
    def score(self, x, y):
        self.model.eval()
        return (self.model(x).argmax(1) == y).float().mean().item()


def embeddings(seed):
    """Embeddings of an audio network; every dimension has a range of its own."""
    X, y = make_classification(2400, 30, n_informative=14, n_classes=5, n_clusters_per_class=1,
                               class_sep=1.3, random_state=seed)
    wine = load_wine().data
    spread, offset = wine.std(0), wine.mean(0)
    return X * spread.repeat(3)[:30] + offset.repeat(3)[:30], y


if __name__ == "__main__":
    cli = argparse.ArgumentParser()
    cli.add_argument("--seed", type=int, default=0)
    args = cli.parse_args()
    torch.manual_seed(args.seed)
    X, y = embeddings(args.seed)
    X_train, X_val, y_train, y_val = train_test_split(X, y, test_size=0.25, random_state=args.seed)
    scaler = StandardScaler()
    x_train = torch.tensor(scaler.fit_transform(X_train), dtype=torch.float32)
    x_val = torch.tensor(X_val, dtype=torch.float32)
    y_train, y_val = torch.tensor(y_train), torch.tensor(y_val)
    clf = TorchMLPClassifier().fit(x_train, y_train, x_val, y_val)
    print("metric:", clf.score(x_val, y_val))
