"""ReduceLROnPlateau on the validation loss, early stopping, and the best weights are brought back before the test.

expect: nothing
style: EarlyStopping class with deep copies, scheduler fed with a metric, regression on standardised targets
metric: coefficient of determination on the test set, higher is better
"""

import argparse
import copy

import torch
import torch.nn as nn
from sklearn.datasets import load_diabetes
from sklearn.metrics import r2_score
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler


class EarlyStopping:
    def __init__(self, patience=12, delta=1e-4):
        self.patience, self.delta, self.best, self.waited, self.weights = patience, delta, float("inf"), 0, None

    def __call__(self, loss, model):
        if loss < self.best - self.delta:
            self.best, self.waited, self.weights = loss, 0, copy.deepcopy(model.state_dict())
        else:
            self.waited += 1
        return self.waited >= self.patience


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    torch.manual_seed(args.seed)
    X, y = load_diabetes(return_X_y=True)
    X, X_test, y, y_test = train_test_split(X, y, test_size=0.25, random_state=3)
    X, X_val, y, y_val = train_test_split(X, y, test_size=0.2, random_state=3)
    sx, sy = StandardScaler().fit(X), StandardScaler().fit(y[:, None])
    to = lambda a, b: (torch.tensor(sx.transform(a), dtype=torch.float32), torch.tensor(sy.transform(b[:, None]), dtype=torch.float32))
    (X, y), (X_val, y_val), (X_test, targets) = to(X, y), to(X_val, y_val), to(X_test, y_test)
    model = nn.Sequential(nn.Linear(10, 32), nn.SiLU(), nn.Dropout(0.2), nn.Linear(32, 1))
    optimizer = torch.optim.Adam(model.parameters(), lr=5e-3, weight_decay=1e-3)
    scheduler = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer, factor=0.3, patience=5)
    stop = EarlyStopping()
    for epoch in range(150):
        model.train()
        for i in torch.randperm(len(X)).split(32):
            loss = nn.functional.mse_loss(model(X[i]), y[i])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        model.eval()
        with torch.no_grad():
            val_loss = nn.functional.mse_loss(model(X_val), y_val).item()
        scheduler.step(val_loss)
        if epoch % 10 == 0:
            print(f"epoch {epoch} val {val_loss:.4f} lr {optimizer.param_groups[0]['lr']:.5f}")
        if stop(val_loss, model):
            print("stopped at", epoch)
            break
    model.load_state_dict(stop.weights)
    with torch.no_grad():
        predicted = sy.inverse_transform(model(X_test).numpy())
    print("metric:", r2_score(y_test, predicted))


if __name__ == "__main__":
    main()
