# Fails in the middle of training: an error in a layer, raised again with its cause.
import torch
from torch import nn

from utils import blobs, checksum

torch.manual_seed(27)
x, y = blobs(64)


class Fragile(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(8, 4)
        self.calls = 0

    def forward(self, x):
        self.calls += 1
        if self.calls > 3:
            x = x[:, :7]
        return self.fc(x)


class TrainingError(Exception):
    pass


def train(model):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for step in range(10):
        optimizer.zero_grad()
        try:
            loss = nn.functional.cross_entropy(model(x), y)
        except RuntimeError as error:
            print("weights", checksum(model))
            raise TrainingError(f"step {step} failed") from error
        loss.backward()
        optimizer.step()
        print(f"{step} {loss.item():.6f}")


train(Fragile())
