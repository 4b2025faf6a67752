"""An ensemble of five networks on bootstrap samples, trained in one go by vmap; calibration and AUC are computed by sklearn.

expect: nothing
style: stacked parameters, torch.vmap over members, probabilities averaged in numpy
metric: ROC AUC of the mean probability, higher is better
"""

import argparse

import numpy as np
import torch
import torch.nn as nn
from sklearn.datasets import make_classification
from sklearn.metrics import brier_score_loss, roc_auc_score
from torch.func import functional_call, stack_module_state


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--members", type=int, default=5)
    args = parser.parse_args()
    torch.manual_seed(args.seed)
    X, y = make_classification(1600, 20, n_informative=8, n_clusters_per_class=3, flip_y=0.03, class_sep=1.2, random_state=args.seed)
    X, y = torch.tensor(X, dtype=torch.float32), torch.tensor(y, dtype=torch.float32)
    X_train, y_train, X_test, y_test = X[:1000], y[:1000], X[1000:], y[1000:]
    nets = [nn.Sequential(nn.Linear(20, 48), nn.ReLU(), nn.Linear(48, 1)) for _ in range(args.members)]
    params, buffers = stack_module_state(nets)
    forward = torch.vmap(lambda p, b, x: functional_call(nets[0], (p, b), (x,)).squeeze(1))
    bags = torch.randint(1000, (args.members, 1000))
    optimizer = torch.optim.AdamW(params.values(), lr=5e-3, weight_decay=0.02)
    for epoch in range(15):
        for part in torch.randperm(1000).split(50):
            rows = bags[:, part]
            logits = forward(params, buffers, X_train[rows])
            loss = nn.functional.binary_cross_entropy_with_logits(logits, y_train[rows], reduction="none").mean(1).sum()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        if epoch % 3 == 0:
            print("epoch", epoch, "loss of a member", loss.item() / args.members)
    with torch.no_grad():
        p = torch.sigmoid(forward(params, buffers, X_test.expand(args.members, -1, -1))).numpy()
    mean = p.mean(0)
    print("members", [round(roc_auc_score(y_test, q), 3) for q in p], "disagreement", float(np.std(p, 0).mean()), "brier", brier_score_loss(y_test, mean))
    print("metric:", roc_auc_score(y_test, mean))


if __name__ == "__main__":
    main()
