"""Mixed precision on the CPU: bfloat16 autocast around the forward pass, and a GradScaler that is switched off there.

expect: nothing
style: torch.autocast("cpu"), GradScaler(enabled=False), OneCycleLR, unscale before clipping
"""

import argparse

import torch
from sklearn.datasets import load_digits
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def get_loaders(seed, batch_size):
    x, y = load_digits(return_X_y=True)
    generator = torch.Generator().manual_seed(seed)
    order = torch.randperm(len(x), generator=generator)
    x = (torch.tensor(x, dtype=torch.float32).view(-1, 1, 8, 8)[order] - 4.9) / 6.0
    y = torch.tensor(y)[order]
    train = DataLoader(TensorDataset(x[:1400], y[:1400]), batch_size=batch_size, shuffle=True, drop_last=True)
    return train, DataLoader(TensorDataset(x[1400:], y[1400:]), batch_size=200)


class ConvNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(1, 16, 3, padding=1), nn.BatchNorm2d(16), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(16, 32, 3, padding=1), nn.BatchNorm2d(32), nn.ReLU()
        )
        self.classifier = nn.Sequential(nn.AdaptiveAvgPool2d(2), nn.Flatten(), nn.Dropout(0.2), nn.Linear(128, 10))

    def forward(self, x):
        return self.classifier(self.features(x))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--epochs", type=int, default=5)
    args = parser.parse_args()
    torch.manual_seed(args.seed)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    train_loader, test_loader = get_loaders(args.seed, 40)
    model = ConvNet().to(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    scheduler = torch.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=1e-2, total_steps=args.epochs * len(train_loader))
    scaler = torch.amp.GradScaler(device, enabled=device == "cuda")
    for epoch in range(args.epochs):
        model.train()
        for x, y in train_loader:
            x, y = x.to(device), y.to(device)
            optimizer.zero_grad(set_to_none=True)
            with torch.autocast(device_type=device, dtype=torch.bfloat16):
                loss = nn.functional.cross_entropy(model(x), y)
            scaler.scale(loss).backward()
            scaler.unscale_(optimizer)
            nn.utils.clip_grad_norm_(model.parameters(), 5.0)
            scaler.step(optimizer)
            scaler.update()
            scheduler.step()
        print(f"epoch {epoch}: loss {loss.item():.4f} lr {scheduler.get_last_lr()[0]:.5f}")
    model.eval()
    hits = 0
    with torch.no_grad(), torch.autocast(device_type=device, dtype=torch.bfloat16):
        for x, y in test_loader:
            hits += (model(x.to(device)).argmax(1).cpu() == y).sum().item()
    print(f"metric: {hits / len(test_loader.dataset):.4f}")


if __name__ == "__main__":
    main()
