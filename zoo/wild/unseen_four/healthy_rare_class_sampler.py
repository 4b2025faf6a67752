"""Fraud-like detection, 3% positives: WeightedRandomSampler with replacement, heavy dropout, slow batch-norm momentum.

expect: nothing
style: training batches are balanced and test data is not, dropout 0.6 on a wide layer, BatchNorm momentum 0.01, average precision
"""
import argparse

import numpy as np
import torch
from sklearn.datasets import make_classification
from sklearn.metrics import average_precision_score, roc_auc_score
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler
from torch import nn
from torch.utils.data import DataLoader, TensorDataset, WeightedRandomSampler


def build(n_in, width=256):
    return nn.Sequential(
        nn.Linear(n_in, width), nn.BatchNorm1d(width, momentum=0.01), nn.ReLU(), nn.Dropout(0.6),
        nn.Linear(width, 64), nn.BatchNorm1d(64, momentum=0.01), nn.ReLU(), nn.Dropout(0.3),
        nn.Linear(64, 1))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--epochs", type=int, default=10)
    args = parser.parse_args()
    torch.manual_seed(args.seed)

    X, y = make_classification(12000, 20, n_informative=10, n_redundant=2, weights=[0.97], flip_y=0.002,
                               class_sep=1.3, n_clusters_per_class=2, random_state=args.seed)
    X_train, X_test, y_train, y_test = train_test_split(X, y, test_size=0.3, stratify=y, random_state=args.seed)
    scaler = StandardScaler().fit(X_train)
    train_set = TensorDataset(torch.tensor(scaler.transform(X_train), dtype=torch.float32),
                              torch.tensor(y_train, dtype=torch.float32))
    test_x = torch.tensor(scaler.transform(X_test), dtype=torch.float32)

    counts = np.bincount(y_train)
    weights = torch.tensor(1.0 / counts[y_train], dtype=torch.double)
    sampler = WeightedRandomSampler(weights, num_samples=len(y_train), replacement=True)
    loader = DataLoader(train_set, batch_size=128, sampler=sampler, drop_last=True)

    model = build(20)
    criterion = nn.BCEWithLogitsLoss()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3, weight_decay=1e-5)
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, step_size=4, gamma=0.3)
    for epoch in range(args.epochs):
        model.train()
        losses = []
        for xb, yb in loader:
            optimizer.zero_grad()
            loss = criterion(model(xb).squeeze(1), yb)
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        scheduler.step()
        model.eval()
        with torch.no_grad():
            # training was balanced: shift the logits back to the true prior
            logits = model(test_x).squeeze(1) + np.log(counts[1] / counts[0])
        p = logits.sigmoid().numpy()
        print("epoch %d loss %.4f AP %.4f AUC %.4f mean p %.3f" % (
            epoch, np.mean(losses), average_precision_score(y_test, p), roc_auc_score(y_test, p), p.mean()))
    print("metric: %.4f" % average_precision_score(y_test, p))


if __name__ == "__main__":
    main()
