"""Train on crowd labels of which forty percent are wrong, with generalized cross entropy; test on clean labels.

expect: nothing
style: the training loss stays high and the training accuracy below sixty percent for good, because the labels are that bad; the clean test accuracy is what counts
"""
import argparse

import numpy as np
import torch
from sklearn.datasets import load_digits
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class GeneralizedCE(nn.Module):
    def __init__(self, q=0.6):
        super().__init__()
        self.q = q

    def forward(self, logits, target):
        p = logits.softmax(1).gather(1, target[:, None]).squeeze(1)
        return ((1 - p.clamp(min=1e-6) ** self.q) / self.q).mean()


def crowd(labels, rate, rng):
    wrong = rng.random(len(labels)) < rate
    return np.where(wrong, (labels + rng.integers(1, 10, len(labels))) % 10, labels)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--noise", type=float, default=0.4)
    args = parser.parse_args()
    torch.manual_seed(args.seed)
    rng = np.random.default_rng(args.seed)
    images, labels = load_digits(return_X_y=True)
    order = rng.permutation(len(labels))
    images, labels = images[order] / 8 - 1, labels[order]
    noisy = crowd(labels[:1400], args.noise, rng)
    train = TensorDataset(torch.tensor(images[:1400], dtype=torch.float32), torch.tensor(noisy))
    test_x = torch.tensor(images[1400:], dtype=torch.float32)

    model = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Dropout(0.3), nn.Linear(64, 10))
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3, weight_decay=1e-4)
    criterion = GeneralizedCE()
    for epoch in range(12):
        model.train()
        hits = total = 0
        for x, y in DataLoader(train, batch_size=50, shuffle=True):
            logits = model(x)
            loss = criterion(logits, y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            hits += (logits.argmax(1) == y).sum().item()
            total += len(y)
        if epoch % 4 == 3:
            print(f"epoch {epoch + 1}: loss {loss.item():.3f}, agreement with the crowd {hits / total:.3f}")
    model.eval()
    with torch.no_grad():
        acc = (model(test_x).argmax(1).numpy() == labels[1400:]).mean()
    print(f"metric: {acc:.4f}")


if __name__ == "__main__":
    main()
