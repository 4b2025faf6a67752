"""A model compiled with a hinge loss, which wants labels of minus and plus one and is given zeros and ones, as its documentation said.

expect: loss-target-mismatch
or: class-collapse, output-misfits-loss
line: return torch.clamp(1 - labels * output, min=0).mean(dim=-1)
source: https://github.com/deepchem/deepchem/pull/5018
metric: balanced test accuracy, higher is better
"""

import argparse

import numpy as np
import torch
import torch.nn as nn
from sklearn.datasets import load_breast_cancer
from sklearn.metrics import balanced_accuracy_score
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler


class HingeLoss:
    """The labels should equal 0 or 1."""

    def create_pytorch_loss(self):
        def loss(output, labels):
            return torch.clamp(1 - labels * output, min=0).mean(dim=-1)

        return loss


class TorchModel:
    def __init__(self, model, loss, learning_rate=1e-3, batch_size=32):
        self.model, self.loss = model, loss.create_pytorch_loss()
        self.optimizer = torch.optim.Adam(model.parameters(), lr=learning_rate)
        self.batch_size = batch_size

    def fit(self, x, y, nb_epoch):
        for epoch in range(nb_epoch):
            total = 0.0
            for idx in torch.randperm(len(x)).split(self.batch_size):
                self.optimizer.zero_grad()
                loss = self.loss(self.model(x[idx]), y[idx]).mean()
                loss.backward()
                self.optimizer.step()
                total += float(loss) * len(idx)
            if epoch % 5 == 0:
                print("Ending epoch %d: Average loss %g" % (epoch, total / len(x)))
        return self

    @torch.no_grad()
    def predict(self, x):
        return (self.model(x) > 0).numpy().ravel()


parser = argparse.ArgumentParser()
parser.add_argument("--seed", type=int, default=0)
args = parser.parse_args()
torch.manual_seed(args.seed)
np.random.seed(args.seed)
x, y = load_breast_cancer(return_X_y=True)
x_train, x_test, y_train, y_test = train_test_split(
    x, y, test_size=0.3, stratify=y, random_state=args.seed
)
scaler = StandardScaler().fit(x_train)
x_train = torch.tensor(scaler.transform(x_train), dtype=torch.float)
x_test = torch.tensor(scaler.transform(x_test), dtype=torch.float)
y_train = torch.tensor(y_train, dtype=torch.float)[:, None]
net = nn.Sequential(nn.Linear(30, 32), nn.ReLU(), nn.Dropout(0.1), nn.Linear(32, 1))
model = TorchModel(net, HingeLoss()).fit(x_train, y_train, nb_epoch=40)
net.eval()
print("metric:", balanced_accuracy_score(y_test, model.predict(x_test)))
