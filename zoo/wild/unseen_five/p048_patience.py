"""Early stopping: the best weights are kept, training goes on for some epochs without progress, and they are put back.

expect: nothing
style: EarlyStopping class, deep copies of the state dict, ReduceLROnPlateau
metric: R squared on test data, higher is better
"""

import argparse
import copy

import torch
import torch.nn as nn
from sklearn.datasets import make_friedman1


class EarlyStopping:
    def __init__(self, patience):
        self.patience, self.best, self.wait, self.state = patience, float("inf"), 0, None

    def __call__(self, value, model):
        if value < self.best - 1e-4:
            self.best, self.wait, self.state = value, 0, copy.deepcopy(model.state_dict())
        else:
            self.wait += 1
        return self.wait >= self.patience


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    torch.manual_seed(args.seed)
    X, y = make_friedman1(2000, 10, noise=1.0, random_state=args.seed)
    X = torch.tensor(X, dtype=torch.float32) * 2 - 1
    y = torch.tensor((y - y.mean()) / y.std(), dtype=torch.float32).unsqueeze(1)
    split = {"train": slice(0, 1200), "val": slice(1200, 1600), "test": slice(1600, 2000)}
    model = nn.Sequential(nn.Linear(10, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 1))
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3, weight_decay=1e-3)
    scheduler = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer, factor=0.5, patience=4)
    stopper = EarlyStopping(patience=12)
    loss_fn = nn.MSELoss()
    for epoch in range(100):
        model.train()
        for i in torch.randperm(1200).split(40):
            optimizer.zero_grad()
            loss = loss_fn(model(X[split["train"]][i]), y[split["train"]][i])
            loss.backward()
            optimizer.step()
        model.eval()
        with torch.no_grad():
            val = loss_fn(model(X[split["val"]]), y[split["val"]]).item()
        scheduler.step(val)
        if epoch % 10 == 0:
            print(f"epoch {epoch} val {val:.4f} lr {optimizer.param_groups[0]['lr']:.5f}")
        if stopper(val, model):
            print("stopped at epoch", epoch)
            break
    model.load_state_dict(stopper.state)
    with torch.no_grad():
        pred, true = model(X[split["test"]]), y[split["test"]]
        print("metric:", (1 - (pred - true).pow(2).sum() / (true - true.mean()).pow(2).sum()).item())


if __name__ == "__main__":
    main()
