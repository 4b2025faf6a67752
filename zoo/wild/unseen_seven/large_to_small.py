"""Distillation into a small model: after a tidying of the code both sides of the soft loss come from the large model.

expect: term-without-gradient
or: no-gradient
line: torch.log_softmax(large_logits / self.temperature, dim=-1), soft_targets
source: https://github.com/labmlai/annotated_deep_learning_paper_implementations/issues/66
metric: test accuracy of the small model, higher is better
"""

import argparse

import torch
import torch.nn as nn
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split


class Configs:
    temperature = 4.0
    loss_weight = 0.9
    epochs = 40
    batch_size = 64

    def __init__(self, seed):
        torch.manual_seed(seed)
        x, y = load_digits(return_X_y=True)
        x, xt, y, yt = train_test_split(x / 16, y, test_size=600, random_state=seed, stratify=y)
        self.x, self.x_test = (
            torch.tensor(x, dtype=torch.float),
            torch.tensor(xt, dtype=torch.float),
        )
        self.y, self.y_test = torch.tensor(y), torch.tensor(yt)
        self.large = nn.Sequential(
            nn.Linear(64, 200), nn.ReLU(), nn.Dropout(0.3), nn.Linear(200, 10)
        )
        self.model = nn.Sequential(nn.Linear(64, 16), nn.ReLU(), nn.Linear(16, 10))
        self.kl_div_loss = nn.KLDivLoss(log_target=False, reduction="batchmean")
        self.loss_func = nn.CrossEntropyLoss()

    def accuracy(self, model):
        model.eval()
        with torch.no_grad():
            return (model(self.x_test).argmax(1) == self.y_test).float().mean().item()

    def train_large(self):
        optimizer = torch.optim.Adam(self.large.parameters(), lr=2e-3)
        for _ in range(25):
            self.large.train()
            for idx in torch.randperm(len(self.x)).split(64):
                optimizer.zero_grad()
                self.loss_func(self.large(self.x[idx]), self.y[idx]).backward()
                optimizer.step()
        print("large model:", self.accuracy(self.large))

    def run(self):
        """The small model is given cheap labels, of which more than half are wrong, and the large one's opinion."""
        self.large.eval()
        cheap = torch.where(torch.rand(len(self.y)) < 0.6, torch.randint(10, self.y.shape), self.y)
        optimizer = torch.optim.Adam(self.model.parameters(), lr=3e-3)
        for epoch in range(self.epochs):
            self.model.train()
            for idx in torch.randperm(len(self.x)).split(self.batch_size):
                data, target = self.x[idx], cheap[idx]
                with torch.no_grad():
                    large_logits = self.large(data)
                output = self.model(data)
                soft_targets = nn.functional.softmax(large_logits / self.temperature, dim=-1)
                soft_loss = self.kl_div_loss(
                    torch.log_softmax(large_logits / self.temperature, dim=-1), soft_targets
                )
                label_loss = self.loss_func(output, target)
                loss = (
                    self.loss_weight * self.temperature**2 * soft_loss
                    + (1 - self.loss_weight) * label_loss
                )
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
            if epoch % 8 == 0:
                print(
                    f"{epoch:4}: loss.soft: {soft_loss.item():.5f} loss.label: {label_loss.item():.5f}"
                )


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    conf = Configs(parser.parse_args().seed)
    conf.train_large()
    conf.run()
    print("metric:", conf.accuracy(conf.model))


if __name__ == "__main__":
    main()
