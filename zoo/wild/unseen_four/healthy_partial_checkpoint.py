"""Fine-tuning from a saved state: the backbone is loaded with strict=False, the head is new on purpose.

expect: nothing
style: pretrain on 10 digits, save, drop fc.*, load partially, freeze then unfreeze, discriminative learning rates
"""
import argparse
import os
import tempfile

import torch
import torch.nn as nn
import torch.nn.functional as F
from sklearn.datasets import load_digits
from torch.utils.data import DataLoader, TensorDataset


class ConvNet(nn.Module):
    def __init__(self, num_classes):
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(1, 16, 3, padding=1, bias=False), nn.BatchNorm2d(16), nn.ReLU())
        self.layer1 = nn.Sequential(nn.Conv2d(16, 32, 3, stride=2, padding=1, bias=False), nn.BatchNorm2d(32), nn.ReLU())
        self.layer2 = nn.Sequential(nn.Conv2d(32, 64, 3, padding=1, bias=False), nn.BatchNorm2d(64), nn.ReLU())
        self.fc = nn.Linear(64, num_classes)

    def forward(self, x):
        x = self.layer2(self.layer1(self.stem(x)))
        return self.fc(x.mean((2, 3)))


def run_epoch(model, loader, optimizer=None):
    training = optimizer is not None
    model.train(training)
    if training and not any(p.requires_grad for p in model.stem.parameters()):
        for m in (model.stem, model.layer1, model.layer2):
            m.eval()  # a frozen backbone keeps the statistics it came with
    total = correct = n = 0
    with torch.set_grad_enabled(training):
        for x, y in loader:
            out = model(x)
            loss = F.cross_entropy(out, y)
            if training:
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
            total += loss.item() * len(y)
            correct += (out.argmax(1) == y).sum().item()
            n += len(y)
    return total / n, correct / n


def loaders(x, y, cut):
    return (DataLoader(TensorDataset(x[:cut], y[:cut]), batch_size=32, shuffle=True),
            DataLoader(TensorDataset(x[cut:], y[cut:]), batch_size=256))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    torch.manual_seed(args.seed)
    x, y = load_digits(return_X_y=True)
    x = torch.tensor(x, dtype=torch.float32).view(-1, 1, 8, 8)
    x = (x / 16.0 - 0.305) / 0.376
    y = torch.tensor(y)
    perm = torch.randperm(len(x))
    x, y = x[perm], y[perm]

    # 1. pre-training on the digits as they are
    source_train, source_val = loaders(x[:1200], y[:1200], 1000)
    model = ConvNet(10)
    opt = torch.optim.Adam(model.parameters(), lr=2e-3)
    for epoch in range(5):
        loss, acc = run_epoch(model, source_train, opt)
    print("pretrained: loss %.3f acc %.3f, val %.3f" % (loss, acc, run_epoch(model, source_val)[1]))

    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "backbone.pt")
        torch.save({"state_dict": model.state_dict(), "epoch": 5}, path)
        checkpoint = torch.load(path, map_location="cpu")

    # 2. another task with little data: inverted pictures, is the digit even / does it have a loop
    tx, ty = -x[1200:], y[1200:]
    loop = torch.isin(ty, torch.tensor([0, 6, 8, 9])).long()
    target = (ty % 2) * 2 + loop
    train, test = loaders(tx, target, 300)
    net = ConvNet(4)
    state = {k: v for k, v in checkpoint["state_dict"].items() if not k.startswith("fc.")}
    missing, unexpected = net.load_state_dict(state, strict=False)
    assert set(missing) == {"fc.weight", "fc.bias"} and not unexpected

    backbone = [p for n, p in net.named_parameters() if not n.startswith("fc.")]
    for p in backbone:
        p.requires_grad_(False)
    head_opt = torch.optim.Adam(net.fc.parameters(), lr=1e-2)
    for epoch in range(6):
        loss, acc = run_epoch(net, train, head_opt)
    print("head only: loss %.3f train %.3f test %.3f" % (loss, acc, run_epoch(net, test)[1]))

    for p in backbone:
        p.requires_grad_(True)
    full_opt = torch.optim.Adam([{"params": backbone, "lr": 1e-3}, {"params": net.fc.parameters(), "lr": 4e-3}])
    for epoch in range(15):
        loss, acc = run_epoch(net, train, full_opt)
    val_loss, val_acc = run_epoch(net, test)
    print("all: loss %.3f train %.3f test loss %.3f" % (loss, acc, val_loss))
    print("metric: %.4f" % val_acc)


if __name__ == "__main__":
    main()
