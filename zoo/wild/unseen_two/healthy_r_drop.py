"""R-Drop: every batch goes through the network twice, with two dropout masks, and the two answers are pulled together.

expect: nothing
metric: test accuracy, higher is better
"""

import argparse

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F


class TextCNN(nn.Module):
    def __init__(self, vocab=200, dim=32, n_classes=4):
        super().__init__()
        self.embedding = nn.Embedding(vocab, dim, padding_idx=0)
        self.convs = nn.ModuleList(nn.Conv1d(dim, 24, k, padding=k // 2) for k in (2, 3, 5))
        self.dropout = nn.Dropout(0.3)
        self.fc = nn.Linear(72, n_classes)

    def forward(self, ids):
        x = self.dropout(self.embedding(ids)).transpose(1, 2)
        pooled = [F.relu(conv(x)).amax(-1) for conv in self.convs]
        return self.fc(self.dropout(torch.cat(pooled, 1)))


def compute_kl_loss(p, q):
    p_loss = F.kl_div(F.log_softmax(p, -1), F.softmax(q, -1), reduction="batchmean")
    q_loss = F.kl_div(F.log_softmax(q, -1), F.softmax(p, -1), reduction="batchmean")
    return (p_loss + q_loss) / 2


def documents(n, rng):
    label = rng.integers(0, 4, n)
    ids = rng.integers(50, 200, (n, 24))
    for row in range(n):
        spots = rng.choice(24, 3, replace=False)
        ids[row, spots] = 1 + 12 * label[row] + rng.integers(0, 12, 3)
        ids[row, rng.integers(12, 25) :] = 0
    return torch.tensor(ids), torch.tensor(label)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--alpha", type=float, default=1.0)
    args = parser.parse_args()
    torch.manual_seed(args.seed)
    rng = np.random.default_rng(args.seed)
    ids, label = documents(2000, rng)
    test_ids, test_label = documents(500, rng)
    model = TextCNN()
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
    for epoch in range(6):
        model.train()
        for rows in torch.randperm(2000).split(40):
            logits1, logits2 = model(ids[rows]), model(ids[rows])
            ce_loss = 0.5 * (F.cross_entropy(logits1, label[rows]) + F.cross_entropy(logits2, label[rows]))
            loss = ce_loss + args.alpha * compute_kl_loss(logits1, logits2)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        print(f"epoch {epoch} ce {ce_loss.item():.4f} total {loss.item():.4f}")
    model.eval()
    with torch.no_grad():
        print("metric:", (model(test_ids).argmax(1) == test_label).float().mean().item())


main()
