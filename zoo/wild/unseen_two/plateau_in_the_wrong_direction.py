"""ReduceLROnPlateau once watched the ROC AUC; now it gets the validation loss, and its mode is still "max".

expect: scheduler-collapse
or: learning-rate-too-low
line: scheduler = ReduceLROnPlateau(optimizer, "max", patience=2, factor=0.2)
source: https://github.com/FunctionLab/selene/issues/115
metric: validation loss at the end, lower is better
"""

import argparse

import numpy as np
import torch
import torch.nn as nn
from torch.optim.lr_scheduler import ReduceLROnPlateau

MOTIFS = ["ACGTG", "TTAGC", "GGCAT"]


class SequenceSampler:
    """Draws DNA of 40 bases with up to three motifs; a motif that is there is a label."""

    def __init__(self, seed):
        self.rng = np.random.default_rng(seed)

    def sample(self, n):
        bases = self.rng.integers(0, 4, (n, 40))
        targets = np.zeros((n, 3), dtype=np.float32)
        for i in range(n):
            for k, motif in enumerate(MOTIFS):
                if self.rng.random() < 0.4:
                    at = 13 * k + self.rng.integers(0, 8)
                    bases[i, at : at + 5] = ["ACGT".index(c) for c in motif]
                    targets[i, k] = 1
        return torch.tensor(np.eye(4, dtype=np.float32)[bases]).transpose(1, 2), torch.tensor(targets)


class DeepSEA(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv_net = nn.Sequential(nn.Conv1d(4, 24, 5), nn.ReLU(), nn.AdaptiveMaxPool1d(4))
        self.classifier = nn.Sequential(nn.Flatten(), nn.Linear(96, 32), nn.ReLU(), nn.Linear(32, 3))

    def forward(self, x):
        return self.classifier(self.conv_net(x))


class TrainModel:
    def __init__(self, seed, max_steps=800, report_stats_every=20):
        self.sampler = SequenceSampler(seed)
        self.model, self.criterion = DeepSEA(), nn.BCEWithLogitsLoss()
        self.max_steps, self.nth_step = max_steps, report_stats_every
        self.validation_data = self.sampler.sample(400)

    def train_and_validate(self):
        optimizer = torch.optim.SGD(self.model.parameters(), lr=0.1, momentum=0.9, weight_decay=1e-6)
        scheduler = ReduceLROnPlateau(optimizer, "max", patience=2, factor=0.2)
        for step in range(self.max_steps):
            self.model.train()
            inputs, targets = self.sampler.sample(32)
            loss = self.criterion(self.model(inputs), targets)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            if step and step % self.nth_step == 0:
                valid_loss = self._validate()
                scheduler.step(valid_loss)
                if step % 80 == 0:
                    print(f"[STEP {step}] train loss: {loss.item():.4f} validation loss: {valid_loss:.4f} lr: {optimizer.param_groups[0]['lr']:.2g}")
        return self._validate()

    def _validate(self):
        self.model.eval()
        with torch.no_grad():
            return self.criterion(self.model(self.validation_data[0]), self.validation_data[1]).item()


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    seed = parser.parse_args().seed
    torch.manual_seed(seed)
    print("metric:", TrainModel(seed).train_and_validate())
