"""Three heads on one body, trained with Accelerate; learned uncertainties weigh the three losses.

expect: nothing
style: accelerate with accumulate(), multi-task (class, value, angle), homoscedastic weights: the total loss goes below zero (looks like a negative loss)
"""

import argparse

import torch
import torch.nn as nn
import torch.nn.functional as F
from accelerate import Accelerator
from accelerate.utils import set_seed
from torch.utils.data import DataLoader, TensorDataset


class MultiTask(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(12, 64), nn.SiLU(), nn.Linear(64, 64), nn.SiLU())
        self.kind, self.size, self.angle = nn.Linear(64, 3), nn.Linear(64, 1), nn.Linear(64, 2)
        self.log_vars = nn.Parameter(torch.zeros(3))

    def forward(self, x):
        h = self.body(x)
        return self.kind(h), self.size(h).squeeze(1), F.normalize(self.angle(h), dim=1)

    def loss(self, outputs, kind, size, angle):
        kind_hat, size_hat, angle_hat = outputs
        terms = torch.stack(
            [
                F.cross_entropy(kind_hat, kind),
                F.mse_loss(size_hat, size),
                (1 - (angle_hat * torch.stack([angle.cos(), angle.sin()], 1)).sum(1)).mean(),
            ]
        )
        return (torch.exp(-self.log_vars) * terms + 0.5 * self.log_vars).sum(), terms.detach()


def objects(n, w):
    x = torch.randn(n, 12)
    kind = (x @ w[:, :3]).argmax(1)
    size = torch.tanh(x @ w[:, 3]) + 0.05 * torch.randn(n)
    angle = torch.atan2(x @ w[:, 4], x @ w[:, 5])
    return TensorDataset(x, kind, size, angle)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    set_seed(args.seed)
    accelerator = Accelerator(cpu=True, gradient_accumulation_steps=2)
    w = torch.randn(12, 6) / 3.5
    train_loader = DataLoader(objects(2400, w), batch_size=16, shuffle=True)
    test = objects(500, w)
    model = MultiTask()
    optimizer = torch.optim.AdamW(model.parameters(), lr=5e-3)
    model, optimizer, train_loader = accelerator.prepare(model, optimizer, train_loader)
    for epoch in range(5):
        model.train()
        for x, kind, size, angle in train_loader:
            with accelerator.accumulate(model):
                loss, terms = model.loss(model(x), kind, size, angle)
                accelerator.backward(loss)
                if accelerator.sync_gradients:
                    accelerator.clip_grad_norm_(model.parameters(), 5.0)
                optimizer.step()
                optimizer.zero_grad()
        accelerator.print(f"epoch {epoch}: total {loss.item():.4f} terms {[round(t, 4) for t in terms.tolist()]}")
    model.eval()
    with torch.no_grad():
        x, kind, size, angle = test.tensors
        kind_hat, size_hat, angle_hat = model(x)
        r2 = 1 - F.mse_loss(size_hat, size) / size.var()
        cosine = (angle_hat * torch.stack([angle.cos(), angle.sin()], 1)).sum(1).mean()
    accelerator.print(f"accuracy {(kind_hat.argmax(1) == kind).float().mean():.4f}, cosine {cosine:.4f}")
    accelerator.print(f"metric: {r2.item():.4f}")


if __name__ == "__main__":
    main()
