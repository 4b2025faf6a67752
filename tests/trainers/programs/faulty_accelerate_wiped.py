"""Gradients are cleared between the backward pass and the step.

needs: accelerate
expect: gradient-wiped
or: missing-step
"""

import torch
from accelerate import Accelerator
from accelerate.utils import set_seed
from sklearn.datasets import load_digits
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, TensorDataset

set_seed(0)
accelerator = Accelerator(gradient_accumulation_steps=4, cpu=True)
digits = load_digits()
x, y = torch.tensor(digits.data / 16, dtype=torch.float32), torch.tensor(digits.target)
train = DataLoader(TensorDataset(x[:1408], y[:1408]), 16, shuffle=True, drop_last=True)
valid = DataLoader(TensorDataset(x[1408:], y[1408:]), 64)
model = nn.Sequential(nn.Linear(64, 96), nn.GELU(), nn.Linear(96, 10))
optimizer = torch.optim.AdamW(model.parameters(), lr=5e-3)
scheduler = torch.optim.lr_scheduler.LinearLR(optimizer, 1.0, 0.1, total_iters=800)
model, optimizer, train, valid, scheduler = accelerator.prepare(
    model, optimizer, train, valid, scheduler
)
for epoch in range(8):
    model.train()
    losses = []
    for inputs, targets in train:
        with accelerator.accumulate(model):
            loss = F.cross_entropy(model(inputs), targets)
            losses.append(loss.item())
            accelerator.backward(loss)
            optimizer.zero_grad()
            if accelerator.sync_gradients:
                accelerator.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            scheduler.step()
            optimizer.zero_grad()
    model.eval()
    right, total, trained = 0, 0.0, sum(losses) / len(losses)
    for inputs, targets in valid:
        with torch.no_grad():
            logits = model(inputs)
            total += F.cross_entropy(logits, targets).item() * len(targets)
            guesses = logits.argmax(1)
        guesses, targets = accelerator.gather_for_metrics((guesses, targets))
        right += int((guesses == targets).sum())
    accelerator.print(epoch, right / len(valid.dataset))
print("logged: train", trained, "over 22 eval", total / len(valid.dataset))
