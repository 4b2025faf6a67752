"""Gradient accumulation over four microbatches, warm-up, and a cosine with warm restarts that lifts the loss now and then.

expect: nothing
style: accumulation with the loss divided, SequentialLR of LinearLR and CosineAnnealingWarmRestarts stepped per update (looks like wiped gradients and divergence)
"""

import argparse

import torch
from sklearn.datasets import load_digits
from torch import nn
from torch.optim.lr_scheduler import CosineAnnealingWarmRestarts, LinearLR, SequentialLR
from torch.utils.data import DataLoader, TensorDataset


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--accumulation-steps", type=int, default=4)
    parser.add_argument("--updates", type=int, default=240)
    args = parser.parse_args()
    torch.manual_seed(args.seed)

    x, y = load_digits(return_X_y=True)
    order = torch.randperm(len(x))
    x, y = (torch.tensor(x, dtype=torch.float32)[order] - 4.9) / 6.0, torch.tensor(y)[order]
    loader = DataLoader(TensorDataset(x[:1400], y[:1400]), batch_size=8, shuffle=True, drop_last=True)
    model = nn.Sequential(nn.Linear(64, 64), nn.GELU(), nn.Dropout(0.1), nn.Linear(64, 10))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.3, momentum=0.9, nesterov=True, weight_decay=1e-4)
    scheduler = SequentialLR(
        optimizer,
        [LinearLR(optimizer, 0.05, total_iters=20), CosineAnnealingWarmRestarts(optimizer, T_0=31, T_mult=2)],
        milestones=[20],
    )

    update, running = 0, 0.0
    optimizer.zero_grad()
    while update < args.updates:
        model.train()
        for i, (inputs, labels) in enumerate(loader):
            loss = nn.functional.cross_entropy(model(inputs), labels) / args.accumulation_steps
            loss.backward()
            running += loss.item()
            if (i + 1) % args.accumulation_steps == 0:
                optimizer.step()
                optimizer.zero_grad()
                scheduler.step()
                update += 1
                if update % 30 == 0:
                    print("update %d lr %.4f loss %.4f" % (update, scheduler.get_last_lr()[0], running / 30))
                    running = 0.0
                if update == args.updates:
                    break

    model.eval()
    with torch.no_grad():
        print("metric: %.4f" % (model(x[1400:]).argmax(1) == y[1400:]).float().mean().item())


if __name__ == "__main__":
    main()
