"""DataLoader workers, forked and spawned, behind `if __name__ == "__main__"`."""

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

from utils import checksum


class Squares(Dataset):
    def __init__(self, count):
        self.count = count

    def __len__(self):
        return self.count

    def __getitem__(self, index):
        x = torch.linspace(-1, 1, 8) * (index + 1) / self.count
        return x, x.pow(2).sum()


def collate(rows):
    return torch.stack([x for x, _ in rows]), torch.stack([y for _, y in rows])


def train(loader, epochs):
    torch.manual_seed(14)
    model = nn.Sequential(nn.Linear(8, 16), nn.Softplus(), nn.Linear(16, 1))
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    for epoch in range(epochs):
        total = 0.0
        for x, y in loader:
            optimizer.zero_grad()
            loss = nn.functional.mse_loss(model(x).squeeze(1), y)
            loss.backward()
            optimizer.step()
            total += loss.item()
        print(f"epoch {epoch}: {total:.6f}")
    return model


if __name__ == "__main__":
    forked = DataLoader(
        Squares(48), batch_size=8, num_workers=2, collate_fn=collate, multiprocessing_context="fork"
    )
    print("fork", checksum(train(forked, 2)))
    spawned = DataLoader(
        Squares(48),
        batch_size=8,
        num_workers=1,
        collate_fn=collate,
        multiprocessing_context="spawn",
        persistent_workers=True,
    )
    print("spawn", checksum(train(spawned, 2)))
