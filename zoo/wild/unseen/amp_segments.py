"""Segment a signal into three states with autocast and a GradScaler; the norm was clipped to one before the gradients were unscaled, so what reached the weights was sixty thousand times too small.

expect: clipped-before-unscale
or: clipping-too-tight
line: torch.nn.utils.clip_grad_norm_(model.parameters(), gradient_clipping)
source: https://github.com/milesial/Pytorch-UNet/issues/468
metric: share of rightly labelled samples, higher is better
"""
import argparse
import logging

import torch
import torch.nn as nn
import torch.nn.functional as F


class UNet1d(nn.Module):
    def __init__(self, c=16, n_classes=3):
        super().__init__()
        self.inc = nn.Conv1d(1, c, 5, padding=2)
        self.down = nn.Conv1d(c, 2 * c, 5, stride=2, padding=2)
        self.up = nn.ConvTranspose1d(2 * c, c, 2, stride=2)
        self.outc = nn.Conv1d(2 * c, n_classes, 3, padding=1)

    def forward(self, x):
        x1 = F.relu(self.inc(x))
        x2 = F.relu(self.up(F.relu(self.down(x1))))
        return self.outc(torch.cat([x1, x2], 1))


def signals(n, t=64):
    """State 0 is noise, 1 oscillates fast, 2 oscillates slowly; two changes per signal."""
    state = torch.zeros(n, t, dtype=torch.long)
    cuts = torch.sort(torch.randint(8, t - 8, (n, 2)), dim=1).values
    kinds = torch.stack([torch.randperm(3) for _ in range(n)])
    grid = torch.arange(t)[None]
    part = (grid >= cuts[:, :1]).long() + (grid >= cuts[:, 1:]).long()
    state = kinds.gather(1, part)
    phase = torch.rand(n, 1) * 6.28
    wave = torch.where(state == 1, torch.sin(grid * 2.2 + phase), torch.sin(grid * 0.7 + phase))
    x = torch.where(state == 0, torch.zeros(()), wave) + 0.25 * torch.randn(n, t)
    return x.unsqueeze(1), state


def train_model(model, steps, learning_rate=0.1, momentum=0.9, gradient_clipping=1.0, amp=True):
    optimizer = torch.optim.SGD(model.parameters(), lr=learning_rate, momentum=momentum)
    grad_scaler = torch.amp.GradScaler("cpu", enabled=amp)
    criterion = nn.CrossEntropyLoss()
    for global_step in range(1, steps + 1):
        images, true_masks = signals(16)
        with torch.autocast("cpu", dtype=torch.bfloat16, enabled=amp):
            masks_pred = model(images)
            loss = criterion(masks_pred.float(), true_masks)
        optimizer.zero_grad(set_to_none=True)
        grad_scaler.scale(loss).backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), gradient_clipping)
        grad_scaler.step(optimizer)
        grad_scaler.update()
        if global_step % 50 == 0:
            logging.info("step %d loss %.4f", global_step, loss.item())


if __name__ == "__main__":
    logging.basicConfig(level=logging.INFO, format="%(levelname)s: %(message)s")
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    torch.manual_seed(args.seed)
    model = UNet1d()
    train_model(model, steps=220)
    model.eval()
    with torch.no_grad():
        x, state = signals(200)
        acc = (model(x).argmax(1) == state).float().mean().item()
    print("metric: %.4f" % acc)
