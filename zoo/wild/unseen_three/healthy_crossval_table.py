"""Five-fold cross-validation of a small net on the breast cancer table, a fresh model, scaler and optimizer per fold.

expect: nothing
style: everyday tabular script; several models are born and thrown away in one process
"""
import argparse

import numpy as np
import torch
import torch.nn as nn
from sklearn.datasets import load_breast_cancer
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import StratifiedKFold
from sklearn.preprocessing import StandardScaler
from torch.utils.data import DataLoader, TensorDataset


def seed_everything(seed):
    np.random.seed(seed)
    torch.manual_seed(seed)


def build_model(n_in):
    return nn.Sequential(
        nn.Linear(n_in, 32), nn.BatchNorm1d(32), nn.ReLU(), nn.Dropout(0.3),
        nn.Linear(32, 16), nn.ReLU(), nn.Dropout(0.2),
        nn.Linear(16, 1))


def train_one_epoch(model, loader, criterion, optimizer):
    model.train()
    total = 0.0
    for xb, yb in loader:
        optimizer.zero_grad()
        loss = criterion(model(xb), yb.unsqueeze(1))
        loss.backward()
        optimizer.step()
        total += loss.item() * len(xb)
    return total / len(loader.dataset)


@torch.no_grad()
def predict(model, x):
    model.eval()
    return torch.sigmoid(model(x)).squeeze(1)


def run_fold(x_tr, y_tr, x_va, y_va, epochs):
    scaler = StandardScaler().fit(x_tr)
    as_t = lambda a: torch.tensor(a, dtype=torch.float32)
    x_tr, x_va = as_t(scaler.transform(x_tr)), as_t(scaler.transform(x_va))
    loader = DataLoader(TensorDataset(x_tr, as_t(y_tr)), batch_size=32, shuffle=True, drop_last=True)
    model = build_model(x_tr.shape[1])
    criterion = nn.BCEWithLogitsLoss()
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3, weight_decay=1e-2)
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, epochs)
    for _ in range(epochs):
        train_loss = train_one_epoch(model, loader, criterion, optimizer)
        scheduler.step()
    return train_loss, predict(model, x_va).numpy()


if __name__ == "__main__":
    ap = argparse.ArgumentParser()
    ap.add_argument("--seed", type=int, default=0)
    ap.add_argument("--epochs", type=int, default=20)
    ap.add_argument("--folds", type=int, default=5)
    args = ap.parse_args()
    seed_everything(args.seed)

    X, y = load_breast_cancer(return_X_y=True)
    oof = np.zeros(len(y))
    folds = StratifiedKFold(args.folds, shuffle=True, random_state=args.seed)
    for k, (tr, va) in enumerate(folds.split(X, y)):
        train_loss, oof[va] = run_fold(X[tr], y[tr], X[va], y[va], args.epochs)
        print(f"fold {k}: train loss {train_loss:.4f} auc {roc_auc_score(y[va], oof[va]):.4f}")
    print(f"accuracy {((oof > 0.5) == y).mean():.4f}")
    print(f"metric: {roc_auc_score(y, oof):.4f}")
