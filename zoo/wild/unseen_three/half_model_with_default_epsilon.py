"""The weights are float16 and Adam keeps its epsilon of 1e-8, which is zero in float16: the first step divides zero by zero.

expect: adam-instability
line: torch.optim.Adam(model.parameters(), lr=args.lr)
source: https://github.com/afiaka87/glide-finetune/pull/6
metric: test accuracy, higher is better
"""

import argparse

import torch
from sklearn.datasets import load_digits
from torch import nn

ap = argparse.ArgumentParser(description="digits in half precision")
ap.add_argument("--seed", type=int, default=0)
ap.add_argument("--lr", type=float, default=1e-3)
ap.add_argument("--steps", type=int, default=500)
args = ap.parse_args()
torch.manual_seed(args.seed)

pixels, digit = load_digits(return_X_y=True)
order = torch.randperm(len(pixels))
pixels = torch.tensor(pixels / 16.0).half()[order]
digit = torch.tensor(digit)[order]
x_train, x_test = pixels[:1400], pixels[1400:]
y_train, y_test = digit[:1400], digit[1400:]

model = nn.Sequential(
    nn.Linear(64, 96),
    nn.ReLU(),
    nn.Linear(96, 96),
    nn.ReLU(),
    nn.Linear(96, 10),
).half()
optimizer = torch.optim.Adam(model.parameters(), lr=args.lr)
criterion = nn.CrossEntropyLoss()

model.train()
for step in range(args.steps):
    batch = torch.randint(0, len(x_train), (64,))
    logits = model(x_train[batch])
    loss = criterion(logits.float(), y_train[batch])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 50 == 0:
        print(f"step {step}: loss {loss.item():.4f}")

model.eval()
with torch.no_grad():
    predicted = model(x_test).argmax(dim=1)
print("metric:", (predicted == y_test).float().mean().item())
