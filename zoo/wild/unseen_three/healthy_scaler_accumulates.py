"""Mixed precision with a loss scaler, four micro-batches per step, unscale before clipping, a last short group too.

expect: nothing
style: Trainer class in the manner of the AMP recipes; loss divided by the size of the group, scheduler only moves when a step was taken
"""
import argparse

import torch
import torch.nn as nn
from torch.utils.data import DataLoader, TensorDataset


class Trainer:
    def __init__(self, model, train_loader, valid_data, lr=3e-3, accumulate=4, epochs=10, max_norm=5.0):
        self.model, self.loader, self.valid = model, train_loader, valid_data
        self.accumulate, self.epochs, self.max_norm = accumulate, epochs, max_norm
        self.optimizer = torch.optim.AdamW(model.parameters(), lr=lr)
        steps = epochs * -(-len(train_loader) // accumulate)
        self.scheduler = torch.optim.lr_scheduler.OneCycleLR(self.optimizer, lr, total_steps=steps)
        self.scaler = torch.amp.GradScaler("cpu", init_scale=2.0 ** 12)
        self.criterion = nn.SmoothL1Loss()

    def run_epoch(self):
        self.model.train()
        total, n_micro = 0.0, len(self.loader)
        self.optimizer.zero_grad(set_to_none=True)
        for i, (x, y) in enumerate(self.loader):
            group_start = i - i % self.accumulate
            group_size = min(self.accumulate, n_micro - group_start)
            with torch.autocast("cpu", dtype=torch.bfloat16):
                pred = self.model(x).squeeze(-1)
            loss = self.criterion(pred.float(), y)
            self.scaler.scale(loss / group_size).backward()
            total += loss.item()
            if (i + 1) % self.accumulate == 0 or i + 1 == n_micro:
                self.scaler.unscale_(self.optimizer)
                torch.nn.utils.clip_grad_norm_(self.model.parameters(), self.max_norm)
                scale_before = self.scaler.get_scale()
                self.scaler.step(self.optimizer)
                self.scaler.update()
                if self.scaler.get_scale() >= scale_before:
                    self.scheduler.step()
                self.optimizer.zero_grad(set_to_none=True)
        return total / n_micro

    @torch.no_grad()
    def validate(self):
        self.model.eval()
        x, y = self.valid
        with torch.autocast("cpu", dtype=torch.bfloat16):
            pred = self.model(x).squeeze(-1)
        return 1 - ((pred.float() - y) ** 2).mean().item() / y.var().item()

    def fit(self):
        for epoch in range(self.epochs):
            loss = self.run_epoch()
            r2 = self.validate()
            print(f"epoch {epoch + 1}: loss {loss:.4f} R2 {r2:.4f} scale {self.scaler.get_scale():.0f}")
        return r2


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    torch.manual_seed(args.seed)
    X = torch.randn(5200, 10)
    y = torch.sin(2 * X[:, 0]) + X[:, 1] * X[:, 2] + 0.5 * X[:, 3] + 0.2 * torch.randn(len(X))
    y = (y - y[:4200].mean()) / y[:4200].std()
    loader = DataLoader(TensorDataset(X[:4200], y[:4200]), batch_size=16, shuffle=True)
    model = nn.Sequential(nn.Linear(10, 96), nn.SiLU(), nn.Linear(96, 96), nn.SiLU(), nn.Linear(96, 1))
    r2 = Trainer(model, loader, (X[4200:], y[4200:])).fit()
    print(f"metric: {r2:.4f}")


if __name__ == "__main__":
    main()
