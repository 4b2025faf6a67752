"""The onset loss is divided by the sum of the weights; a clip without a single onset divides zero by zero.

expect: non-finite
line: / torch.sum(on_weight)
source: https://github.com/york135/CTC_CE_for_AST/issues/3
metric: F1 of the onset frames on test clips, higher is better
"""

import argparse
import random

import torch
import torch.nn as nn


class OnsetNet(nn.Module):
    def __init__(self, bins=10, width=24):
        super().__init__()
        self.conv = nn.Conv1d(bins, width, 5, padding=2)
        self.rnn = nn.GRU(width, width, bidirectional=True, batch_first=True)
        self.onset = nn.Linear(2 * width, 1)

    def forward(self, spec):
        x = torch.relu(self.conv(spec.transpose(1, 2))).transpose(1, 2)
        return self.onset(self.rnn(x)[0]).squeeze(-1)


def clip(frames=40):
    """Notes begin here and there; a few clips are silent."""
    spec = 0.3 * torch.randn(frames, 10)
    onset = torch.zeros(frames)
    notes = random.choice([1, 2, 3, 4]) if random.random() > 0.02 else 0
    for _ in range(notes):
        t, pitch = random.randrange(2, frames - 6), random.randrange(10)
        spec[t : t + 5, pitch] += torch.linspace(2.0, 0.5, 5)
        onset[t] = 1.0
    return spec, onset


class AST_Model:
    def __init__(self):
        self.model = OnsetNet()
        self.optimizer = torch.optim.Adam(self.model.parameters(), lr=3e-3)
        self.onset_criterion = nn.BCEWithLogitsLoss(reduction="none", pos_weight=torch.tensor(4.0))

    def training_step(self, spec, onset_prob):
        onset_logits = self.model(spec[None])[0]
        # frames around an onset count, silence far from any does not
        on_weight = nn.functional.max_pool1d(onset_prob[None, None], 13, 1, 6)[0, 0]
        split_train_loss0 = torch.dot(self.onset_criterion(onset_logits, onset_prob), on_weight) / torch.sum(on_weight)
        self.optimizer.zero_grad()
        split_train_loss0.backward()
        self.optimizer.step()
        return split_train_loss0.item()

    def predict(self, spec):
        with torch.no_grad():
            return (torch.sigmoid(self.model(spec[None])[0]) > 0.5).float()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    random.seed(args.seed)
    torch.manual_seed(args.seed)
    ast = AST_Model()
    for i in range(400):
        loss = ast.training_step(*clip())
        if i % 50 == 0:
            print("step %d split_train_loss0 = %.4f" % (i, loss))
    tp = fp = fn = 0
    for _ in range(100):
        spec, onset = clip()
        near = nn.functional.max_pool1d(onset[None, None], 13, 1, 6)[0, 0]
        found = ast.predict(spec) * near
        tp += (found * onset).sum().item()
        fp += (found * (1 - onset)).sum().item()
        fn += ((1 - found) * onset).sum().item()
    print("metric: %.4f" % (2 * tp / max(2 * tp + fp + fn, 1)))


if __name__ == "__main__":
    main()
