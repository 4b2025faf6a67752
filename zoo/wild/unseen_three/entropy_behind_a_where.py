"""torch.where hides the zero times log(0) of the entropy in the forward, not in the backward: the gradient is NaN.

expect: non-finite
line: torch.where(p > 0, p * torch.log(p), torch.zeros_like(p))
source: https://github.com/pytorch/pytorch/issues/31829
metric: test accuracy of the choice, higher is better
"""

import argparse

import torch
import torch.nn as nn

SLOTS, FEATURES = 8, 5


def offers(n):
    """Each customer sees 3 to 8 offers and takes the one with the best hidden value."""
    x = torch.randn(n, SLOTS, FEATURES)
    count = torch.randint(3, SLOTS + 1, (n, 1))
    valid = torch.arange(SLOTS).unsqueeze(0) < count
    value = x[..., 0] * x[..., 1] + torch.sin(2 * x[..., 2]) - 0.5 * x[..., 3].abs()
    return x, valid, value.masked_fill(~valid, -1e9).argmax(1)


class Chooser(nn.Module):
    def __init__(self, width=48):
        super().__init__()
        self.score = nn.Sequential(nn.Linear(FEATURES, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU(), nn.Linear(width, 1))

    def forward(self, x, valid):
        return self.score(x).squeeze(-1).masked_fill(~valid, float("-inf"))


def negative_entropy(logits):
    p = logits.softmax(dim=1)
    plogp = torch.where(p > 0, p * torch.log(p), torch.zeros_like(p))
    return plogp.sum(dim=1).mean()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--steps", type=int, default=800)
    parser.add_argument("--entropy", type=float, default=0.01)
    args = parser.parse_args()
    torch.manual_seed(args.seed)

    model = Chooser()
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
    x, valid, choice = offers(6000)
    for step in range(args.steps):
        pick = torch.randint(0, len(x), (64,))
        logits = model(x[pick], valid[pick])
        loss = nn.functional.cross_entropy(logits, choice[pick]) + args.entropy * negative_entropy(logits)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 100 == 0:
            print(f"step {step} loss {loss.item():.4f}")

    x, valid, choice = offers(1000)
    with torch.no_grad():
        print("metric:", (model(x, valid).argmax(1) == choice).float().mean().item())


if __name__ == "__main__":
    main()
