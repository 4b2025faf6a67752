"""An optimizer of one's own: the corrections for bias are applied to the stored moments in place, and pile up from step to step.

expect: learning-rate-too-low
or: adam-instability
line: exp_avg_sq.div_(bias_correction2)
source: https://github.com/frgfm/holocron/issues/1
metric: test accuracy, higher is better
"""

import argparse

import torch
import torch.nn as nn
from sklearn.datasets import make_classification
from torch.optim.optimizer import Optimizer


class RAdam(Optimizer):
    """Adam with a rectified second moment (arXiv 1908.03265)."""

    def __init__(self, params, lr=1e-3, betas=(0.9, 0.999), eps=1e-8):
        super().__init__(params, dict(lr=lr, betas=betas, eps=eps))

    @torch.no_grad()
    def step(self, closure=None):
        for group in self.param_groups:
            beta1, beta2 = group["betas"]
            sma_inf = 2 / (1 - beta2) - 1
            for p in group["params"]:
                if p.grad is None:
                    continue
                state = self.state[p]
                if len(state) == 0:
                    state["step"] = 0
                    state["exp_avg"] = torch.zeros_like(p)
                    state["exp_avg_sq"] = torch.zeros_like(p)
                exp_avg, exp_avg_sq = state["exp_avg"], state["exp_avg_sq"]
                state["step"] += 1
                bias_correction1 = 1 - beta1 ** state["step"]
                bias_correction2 = 1 - beta2 ** state["step"]
                exp_avg.mul_(beta1).add_(p.grad, alpha=1 - beta1)
                exp_avg_sq.mul_(beta2).addcmul_(p.grad, p.grad, value=1 - beta2)
                sma_t = sma_inf - 2 * state["step"] * (1 - bias_correction2) / bias_correction2
                exp_avg.div_(bias_correction1)
                exp_avg_sq.div_(bias_correction2)
                if sma_t > 4:
                    r_t = (
                        (sma_t - 4)
                        * (sma_t - 2)
                        * sma_inf
                        / ((sma_inf - 4) * (sma_inf - 2) * sma_t)
                    ) ** 0.5
                    p.addcdiv_(
                        exp_avg, exp_avg_sq.sqrt().add_(group["eps"]), value=-group["lr"] * r_t
                    )
                else:
                    p.add_(exp_avg, alpha=-group["lr"])


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--epochs", type=int, default=12)
    args = parser.parse_args()
    torch.manual_seed(args.seed)
    x, y = make_classification(
        2400,
        20,
        n_informative=10,
        n_classes=4,
        n_clusters_per_class=2,
        class_sep=1.6,
        random_state=args.seed,
    )
    x, y = torch.tensor(x, dtype=torch.float), torch.tensor(y)
    model = nn.Sequential(
        nn.Linear(20, 96), nn.ReLU(), nn.Linear(96, 96), nn.ReLU(), nn.Linear(96, 4)
    )
    optimizer = RAdam(model.parameters(), lr=2e-3)
    for epoch in range(args.epochs):
        running = 0.0
        for idx in torch.randperm(1800).split(32):
            loss = nn.functional.cross_entropy(model(x[idx]), y[idx])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            running += loss.item() * len(idx)
        with torch.no_grad():
            acc = (model(x[1800:]).argmax(1) == y[1800:]).float().mean().item()
        print(f"Epoch {epoch + 1}/{args.epochs} - loss: {running / 1800:.4} - acc: {acc:.2%}")
    print("metric:", acc)


if __name__ == "__main__":
    main()
