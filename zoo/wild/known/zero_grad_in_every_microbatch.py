"""Gradient accumulation over 16 microbatches, with zero_grad inside the inner loop: only the last one counts.

expect: gradient-wiped
or: call-without-effect
line: optimizer.zero_grad(set_to_none=True)
source: https://github.com/bytetriper/RAE/issues/67
metric: test loss, lower is better
"""

import argparse

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def get_data(n, teacher):
    x = torch.randn(n, 16)
    with torch.no_grad():
        y = teacher(x) + 0.1 * torch.randn(n, 4)
    return TensorDataset(x, y)


def main(args):
    torch.manual_seed(args.seed)
    teacher = nn.Sequential(nn.Linear(16, 24), nn.Tanh(), nn.Linear(24, 4))
    for p in teacher.parameters():
        p.data.mul_(2.0)
    train_ds, val_ds = get_data(4096, teacher), get_data(1024, teacher)
    model = nn.Sequential(nn.Linear(16, 64), nn.GELU(), nn.Linear(64, 4))
    optimizer = torch.optim.SGD(model.parameters(), lr=args.lr)
    grad_accum_steps = args.global_batch_size // args.micro_batch_size
    loader = DataLoader(train_ds, batch_size=args.global_batch_size, shuffle=True, drop_last=True)

    global_step = 0
    for epoch in range(args.epochs):
        model.train()
        for x, y in loader:
            running_loss = 0.0
            for mx, my in zip(x.chunk(grad_accum_steps), y.chunk(grad_accum_steps)):
                optimizer.zero_grad(set_to_none=True)
                loss = nn.functional.mse_loss(model(mx), my) / grad_accum_steps
                loss.backward()
                running_loss += loss.item()
            optimizer.step()
            global_step += 1
        model.eval()
        with torch.no_grad():
            x, y = val_ds.tensors
            val_loss = nn.functional.mse_loss(model(x), y).item()
        print(f"[epoch {epoch}] step={global_step} train={running_loss:.4f} val={val_loss:.4f}")
    print(f"metric: {val_loss:.4f}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--epochs", type=int, default=6)
    parser.add_argument("--lr", type=float, default=0.2)
    parser.add_argument("--global-batch-size", type=int, default=128)
    parser.add_argument("--micro-batch-size", type=int, default=8)
    main(parser.parse_args())
