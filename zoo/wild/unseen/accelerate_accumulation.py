"""Image-free classification loop with Accelerate: micro-batches of eight, four of them per update, cosine schedule with warm-up.

expect: nothing
style: accelerator.accumulate scales the loss and skips three of four steps and zero_grads; the schedule steps only with the optimizer
"""
import argparse

import torch
from accelerate import Accelerator
from accelerate.utils import set_seed
from torch import nn
from torch.optim.lr_scheduler import CosineAnnealingLR, LinearLR, SequentialLR
from torch.utils.data import DataLoader, TensorDataset


def rings(n, generator):
    """Concentric rings in three dimensions, seven noise columns."""
    y = torch.randint(0, 3, (n,), generator=generator)
    u = torch.randn(n, 3, generator=generator)
    r = 0.8 + 0.9 * y.float() + 0.12 * torch.randn(n, generator=generator)
    x = torch.cat([u / u.norm(dim=1, keepdim=True) * r[:, None], torch.randn(n, 7, generator=generator)], 1)
    return x, y


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--gradient_accumulation_steps", type=int, default=4)
    args = parser.parse_args()
    accelerator = Accelerator(gradient_accumulation_steps=args.gradient_accumulation_steps, cpu=True)
    set_seed(args.seed)
    g = torch.Generator().manual_seed(args.seed)
    train_loader = DataLoader(TensorDataset(*rings(1600, g)), batch_size=8, shuffle=True)
    test_loader = DataLoader(TensorDataset(*rings(800, g)), batch_size=100)

    model = nn.Sequential(nn.Linear(10, 64), nn.GELU(), nn.Linear(64, 64), nn.GELU(), nn.Linear(64, 3))
    optimizer = torch.optim.AdamW(model.parameters(), lr=6e-3)
    epochs = 5
    updates = epochs * len(train_loader) // args.gradient_accumulation_steps
    scheduler = SequentialLR(optimizer, [LinearLR(optimizer, 0.1, 1.0, total_iters=15),
                                         CosineAnnealingLR(optimizer, T_max=updates - 15)], milestones=[15])
    model, optimizer, train_loader, test_loader, scheduler = accelerator.prepare(
        model, optimizer, train_loader, test_loader, scheduler)
    criterion = nn.CrossEntropyLoss()
    for epoch in range(epochs):
        model.train()
        for x, y in train_loader:
            with accelerator.accumulate(model):
                loss = criterion(model(x), y)
                accelerator.backward(loss)
                if accelerator.sync_gradients:
                    accelerator.clip_grad_norm_(model.parameters(), 1.0)
                optimizer.step()
                scheduler.step()
                optimizer.zero_grad()
        model.eval()
        right = total = 0
        for x, y in test_loader:
            with torch.no_grad():
                pred = model(x).argmax(-1)
            pred, y = accelerator.gather_for_metrics((pred, y))
            right += (pred == y).sum().item()
            total += len(y)
        accelerator.print(f"epoch {epoch}: {right / total:.3f}")
    accelerator.print(f"metric: {right / total:.4f}")


if __name__ == "__main__":
    main()
