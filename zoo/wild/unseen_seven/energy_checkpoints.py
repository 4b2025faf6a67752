"""The best checkpoint is to be kept: a condition without its brackets holds in every epoch, and the last one is kept.

expect: weights-not-restored
or: overfitting
line: or val_metric > self.best_val_metric
source: https://github.com/facebookresearch/fairchem/pull/345
metric: mae on test data, lower is better
"""

import argparse
import copy

import torch
import torch.nn as nn


class ForcesTrainer:
    def __init__(self, model, optimizer, primary_metric="energy_mae"):
        self.model, self.optimizer, self.primary_metric = model, optimizer, primary_metric
        self.best_val_metric = 1e9 if "mae" in primary_metric else -1.0
        self.best_checkpoint = None

    def train_epoch(self, loader):
        self.model.train()
        for x, y in loader:
            loss = nn.functional.l1_loss(self.model(x), y)
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()
        return loss.item()

    @torch.no_grad()
    def validate(self, x, y):
        self.model.eval()
        return nn.functional.l1_loss(self.model(x), y).item()

    def update_best(self, val_metric):
        if (
            "mae" in self.primary_metric and val_metric < self.best_val_metric
            or val_metric > self.best_val_metric
        ):  # fmt: skip
            self.best_val_metric = val_metric
            self.best_checkpoint = copy.deepcopy(self.model.state_dict())


def molecules(n, mixing):
    x = torch.randn(n, 24)
    return x, torch.tanh(x[:, :6] @ mixing).sum(1, keepdim=True) + 0.8 * torch.randn(n, 1)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--max-epochs", type=int, default=150)
    args = parser.parse_args()
    torch.manual_seed(args.seed)
    mixing = torch.randn(6, 4)
    (x, y), (x_val, y_val), (x_test, y_test) = (
        molecules(160, mixing),
        molecules(400, mixing),
        molecules(1500, mixing),
    )
    loader = torch.utils.data.DataLoader(
        torch.utils.data.TensorDataset(x, y), batch_size=16, shuffle=True
    )
    model = nn.Sequential(
        nn.Linear(24, 128), nn.SiLU(), nn.Linear(128, 128), nn.SiLU(), nn.Linear(128, 1)
    )
    trainer = ForcesTrainer(model, torch.optim.Adam(model.parameters(), lr=1e-3))
    for epoch in range(args.max_epochs):
        loss = trainer.train_epoch(loader)
        val = trainer.validate(x_val, y_val)
        trainer.update_best(val)
        if epoch % 25 == 0:
            print(f"epoch: {epoch}, train_loss: {loss:.4f}, val_energy_mae: {val:.4f}")
    model.load_state_dict(trainer.best_checkpoint)
    print("metric:", trainer.validate(x_test, y_test))


if __name__ == "__main__":
    main()
