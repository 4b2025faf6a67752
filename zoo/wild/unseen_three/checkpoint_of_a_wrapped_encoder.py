"""The checkpoint's names begin with "model.", the encoder's do not: strict=False loads nothing, and the new head stands on noise.

expect: call-without-effect
or: checkpoint-not-loaded
line: encoder.load_state_dict(checkpoint["state_dict"], strict=False)
source: https://github.com/torchgeo/torchgeo/issues/4036
metric: test accuracy of the new head, higher is better
"""

import argparse
import io

import torch
import torch.nn as nn
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split


def make_encoder():
    return nn.Sequential(
        nn.Conv2d(1, 16, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(16, 32, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
        nn.Flatten(), nn.Linear(128, 64), nn.ReLU(),
    )


class Pretrainer(nn.Module):
    def __init__(self, classes):
        super().__init__()
        self.model = make_encoder()
        self.head = nn.Linear(64, classes)

    def forward(self, x):
        return self.head(self.model(x))


def fit(net, x, y, steps, lr, batch=32):
    optimizer = torch.optim.Adam([p for p in net.parameters() if p.requires_grad], lr=lr)
    loss_fn = nn.CrossEntropyLoss()
    net.train()
    for step in range(steps):
        pick = torch.randint(0, len(x), (min(batch, len(x)),))
        optimizer.zero_grad()
        loss = loss_fn(net(x[pick]), y[pick])
        loss.backward()
        optimizer.step()
        if step % 50 == 0:
            print(f"  step {step:4d} loss {loss.item():.4f}")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    torch.manual_seed(args.seed)

    x, y = load_digits(return_X_y=True)
    x = torch.tensor(x / 8.0 - 1.0, dtype=torch.float32).view(-1, 1, 8, 8)
    y = torch.tensor(y)
    source, rest = train_test_split(range(len(x)), train_size=1000, random_state=args.seed)
    few, test = rest[:50], rest[100:]

    print("pre-training on the source labels")
    pretrainer = Pretrainer(10)
    fit(pretrainer, x[source], y[source], steps=500, lr=2e-3)
    buffer = io.BytesIO()
    torch.save({"state_dict": pretrainer.state_dict(), "epoch": 1}, buffer)
    buffer.seek(0)

    print("training a head on 50 samples: pairs of digits")
    checkpoint = torch.load(buffer)
    encoder = make_encoder()
    encoder.load_state_dict(checkpoint["state_dict"], strict=False)
    encoder.requires_grad_(False)
    net = nn.Sequential(encoder, nn.Linear(64, 5))
    fit(net, x[few], y[few] // 2, steps=300, lr=5e-3)

    net.eval()
    with torch.no_grad():
        accuracy = (net(x[test]).argmax(1) == y[test] // 2).float().mean().item()
    print("metric:", accuracy)


if __name__ == "__main__":
    main()
