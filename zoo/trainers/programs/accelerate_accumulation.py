"""A loop with Accelerate: accumulation, clipping, a schedule, gathered evaluation.

expect: nothing
"""

import sys

import torch
from accelerate import Accelerator
from accelerate.utils import set_seed
from sklearn.datasets import load_digits
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, TensorDataset

set_seed(int(sys.argv[-1]) if len(sys.argv) > 2 else 0)
accelerator = Accelerator(gradient_accumulation_steps=4, cpu=True)
digits = load_digits()
x, y = torch.tensor(digits.data / 16, dtype=torch.float32), torch.tensor(digits.target)
train = DataLoader(TensorDataset(x[:1400], y[:1400]), 16, shuffle=True, drop_last=True)
valid = DataLoader(TensorDataset(x[1400:], y[1400:]), 64)
model = nn.Sequential(nn.Linear(64, 96), nn.GELU(), nn.Linear(96, 10))
optimizer = torch.optim.AdamW(model.parameters(), lr=5e-3)
scheduler = torch.optim.lr_scheduler.LinearLR(optimizer, 1.0, 0.1, total_iters=800)
model, optimizer, train, valid, scheduler = accelerator.prepare(model, optimizer, train, valid, scheduler)
for epoch in range(8):
    model.train()
    for inputs, targets in train:
        with accelerator.accumulate(model):
            loss = F.cross_entropy(model(inputs), targets)
            accelerator.backward(loss)
            if accelerator.sync_gradients:
                accelerator.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            scheduler.step()
            optimizer.zero_grad()
    model.eval()
    right = 0
    for inputs, targets in valid:
        with torch.no_grad():
            guesses = model(inputs).argmax(1)
        guesses, targets = accelerator.gather_for_metrics((guesses, targets))
        right += int((guesses == targets).sum())
    accelerator.print(epoch, right / len(valid.dataset))
