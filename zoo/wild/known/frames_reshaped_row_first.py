"""Scores of (batch, class, frame) are reshaped to (-1, class) for the loss: rows of the reshape are not frames.

expect: target-misaligned
line: .reshape(-1, n_class)
source: https://github.com/weirme/FCSN/issues/32
metric: frame accuracy on held-out clips, higher is better
"""

import argparse

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset

n_class = 3


class FCSN(nn.Module):
    def __init__(self, n_in=4, width=24):
        super().__init__()
        self.conv1 = nn.Sequential(nn.Conv1d(n_in, width, 5, padding=2), nn.BatchNorm1d(width), nn.ReLU())
        self.conv2 = nn.Sequential(nn.Conv1d(width, width, 5, padding=2), nn.BatchNorm1d(width), nn.ReLU())
        self.score = nn.Conv1d(width, n_class, 1)

    def forward(self, x):
        return self.score(self.conv2(self.conv1(x)))


class Solver:
    def __init__(self, config):
        self.config = config
        self.model = FCSN()
        self.optimizer = torch.optim.Adam(self.model.parameters(), lr=config.lr)
        self.train_loader = DataLoader(clips(600), batch_size=config.batch_size, shuffle=True)
        self.test = clips(100)

    @staticmethod
    def sum_loss(pred_score, gt_labels):
        n_batch, _, n_frame = pred_score.shape
        log_p = torch.log_softmax(pred_score, dim=1).reshape(-1, n_class)
        return F.nll_loss(log_p, gt_labels.view(-1))

    def train(self):
        self.model.train()
        for epoch in range(self.config.n_epochs):
            mean = 0.0
            for features, labels in self.train_loader:
                loss = self.sum_loss(self.model(features), labels)
                self.optimizer.zero_grad()
                loss.backward()
                self.optimizer.step()
                mean += loss.item() / len(self.train_loader)
            print("epoch", epoch, "loss", round(mean, 4))

    def evaluate(self):
        self.model.eval()
        with torch.no_grad():
            features, labels = self.test.tensors
            return (self.model(features).argmax(1) == labels).float().mean().item()


def clips(n, n_frame=40):
    """Frames of three kinds in segments of 5 to 8; the features are noisy."""
    labels = torch.zeros(n, n_frame, dtype=torch.long)
    for i in range(n):
        t = 0
        while t < n_frame:
            step = int(torch.randint(5, 9, (1,)))
            labels[i, t : t + step] = int(torch.randint(n_class, (1,)))
            t += step
    means = torch.tensor([[1.0, 0, 0, 0.5], [0, 1.0, 0, -0.5], [0, 0, 1.0, 0.0]])
    features = means[labels] + 0.7 * torch.randn(n, n_frame, 4)
    return TensorDataset(features.transpose(1, 2).contiguous(), labels)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--lr", type=float, default=2e-3)
    parser.add_argument("--n_epochs", type=int, default=6)
    parser.add_argument("--batch_size", type=int, default=16)
    config = parser.parse_args()
    torch.manual_seed(config.seed)
    solver = Solver(config)
    solver.train()
    print("metric:", round(solver.evaluate(), 4))
