"""A Trainer class with callbacks and a history, the house style of many repositories."""

from dataclasses import dataclass, field

import torch
from torch import nn

from utils import blobs, checksum


@dataclass
class Config:
    epochs: int = 3
    lr: float = 1e-2
    batch: int = 32
    history: list = field(default_factory=list)


class Classifier(nn.Module):
    def __init__(self, features, classes):
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(features, 16), nn.BatchNorm1d(16), nn.ReLU())
        self.head = nn.Linear(16, classes)

    def forward(self, x):
        return self.head(self.encoder(x))


class Trainer:
    def __init__(self, model, config):
        self.model = model
        self.config = config
        self.optimizer = torch.optim.AdamW(model.parameters(), lr=config.lr)
        self.loss = nn.CrossEntropyLoss(label_smoothing=0.1)

    def fit(self, data, targets):
        for epoch in range(self.config.epochs):
            total = self.run_epoch(data, targets)
            self.config.history.append(total)
            print(f"[{epoch + 1}/{self.config.epochs}] loss={total:.6f}")

    def run_epoch(self, data, targets):
        total, count = 0.0, 0
        for x, y in zip(data.split(self.config.batch), targets.split(self.config.batch)):
            total += self.step(x, y) * len(x)
            count += len(x)
        return total / count

    def step(self, x, y):
        self.model.train()
        self.optimizer.zero_grad(set_to_none=True)
        loss = self.loss(self.model(x), y)
        loss.backward()
        nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
        self.optimizer.step()
        return loss.item()


if __name__ == "__main__":
    torch.manual_seed(1)
    points, labels = blobs()
    trainer = Trainer(Classifier(8, 4), Config())
    trainer.fit(points, labels)
    print(trainer.config)
    print("weights", checksum(trainer.model))
