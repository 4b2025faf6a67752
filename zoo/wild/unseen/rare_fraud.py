"""Fraud detection with three percent positives: pos_weight in the loss, the output bias set to the prior, judged by average precision.

expect: nothing
style: accuracy would be useless here and is not used; the bias of the last layer starts far from zero on purpose; validation picks the epoch and a deep copy of the weights is restored
"""
import argparse
import copy
import math

import torch
from sklearn.datasets import make_classification
from sklearn.metrics import average_precision_score
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler
from torch import nn


def load(seed):
    x, y = make_classification(5000, 20, n_informative=10, weights=[0.97], flip_y=0.002, class_sep=1.4,
                               random_state=seed)
    x_tr, x_te, y_tr, y_te = train_test_split(x, y, test_size=0.4, stratify=y, random_state=seed)
    x_va, x_te, y_va, y_te = train_test_split(x_te, y_te, test_size=0.5, stratify=y_te, random_state=seed)
    scaler = StandardScaler().fit(x_tr)
    return [(torch.tensor(scaler.transform(a), dtype=torch.float32), torch.tensor(b, dtype=torch.float32))
            for a, b in ((x_tr, y_tr), (x_va, y_va), (x_te, y_te))]


class FraudNet(nn.Module):
    def __init__(self, prior):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(20, 48), nn.ReLU(), nn.Dropout(0.2), nn.Linear(48, 24), nn.ReLU())
        self.out = nn.Linear(24, 1)
        nn.init.constant_(self.out.bias, math.log(prior / (1 - prior)))

    def forward(self, x):
        return self.out(self.body(x)).squeeze(1)


def ap(model, data):
    model.eval()
    with torch.no_grad():
        return average_precision_score(data[1].numpy(), model(data[0]).numpy())


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    seed = parser.parse_args().seed
    torch.manual_seed(seed)
    train, val, test = load(seed)
    prior = train[1].mean().item()
    model = FraudNet(prior)
    criterion = nn.BCEWithLogitsLoss(pos_weight=torch.tensor((1 - prior) / prior).sqrt())
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3)
    best, best_state = -1.0, None
    for epoch in range(12):
        model.train()
        for idx in torch.randperm(len(train[0])).split(128):
            loss = criterion(model(train[0][idx]), train[1][idx])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        score = ap(model, val)
        if score > best:
            best, best_state = score, copy.deepcopy(model.state_dict())
    model.load_state_dict(best_state)
    print(f"positives {prior:.3f}, best validation {best:.3f}")
    print(f"metric: {ap(model, test):.4f}")


if __name__ == "__main__":
    main()
