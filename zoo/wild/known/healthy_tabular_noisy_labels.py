"""Categories with embeddings and a few numbers; a quarter of the labels are wrong, so the loss cannot go far below 0.6.

expect: nothing
style: entity embeddings, SGD with cosine decay, noisy labels (looks like a model that does not learn)
"""

import argparse

import numpy as np
import torch
import torch.nn as nn
from torch.utils.data import DataLoader, Dataset

CARDINALITIES = (12, 30, 5)


class TabularDataset(Dataset):
    def __init__(self, n, effects, rng, noise):
        self.cats = np.stack([rng.integers(0, c, n) for c in CARDINALITIES], 1)
        self.conts = rng.standard_normal((n, 3)).astype(np.float32)
        score = sum(e[self.cats[:, i]] for i, e in enumerate(effects)) + self.conts @ np.array([1.0, -0.7, 0.0])
        self.y = (score > 0).astype(np.int64)
        flip = rng.random(n) < noise
        self.y[flip] = 1 - self.y[flip]

    def __len__(self):
        return len(self.y)

    def __getitem__(self, idx):
        return [self.cats[idx], self.conts[idx], self.y[idx]]


class FeedForwardNN(nn.Module):
    def __init__(self):
        super().__init__()
        self.emb_layers = nn.ModuleList([nn.Embedding(c, min(8, (c + 1) // 2)) for c in CARDINALITIES])
        no_of_embs = sum(e.embedding_dim for e in self.emb_layers)
        self.bn = nn.BatchNorm1d(3)
        self.layers = nn.Sequential(nn.Linear(no_of_embs + 3, 40), nn.ReLU(), nn.Dropout(0.1), nn.Linear(40, 2))

    def forward(self, cat_data, cont_data):
        x = [emb(cat_data[:, i]) for i, emb in enumerate(self.emb_layers)]
        return self.layers(torch.cat([*x, self.bn(cont_data)], 1))


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    torch.manual_seed(args.seed)
    rng = np.random.default_rng(args.seed)
    effects = [rng.standard_normal(c) for c in CARDINALITIES]
    train = DataLoader(TabularDataset(3000, effects, rng, noise=0.25), batch_size=50, shuffle=True)
    test = DataLoader(TabularDataset(800, effects, rng, noise=0.0), batch_size=400)
    model = FeedForwardNN()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9, weight_decay=1e-3)
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=6)
    for epoch in range(6):
        model.train()
        losses = []
        for cat, cont, y in train:
            loss = nn.functional.cross_entropy(model(cat, cont), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        scheduler.step()
        print("epoch", epoch, "loss", np.mean(losses))
    model.eval()
    with torch.no_grad():
        hits = [(model(cat, cont).argmax(1) == y).float().mean().item() for cat, cont, y in test]
    print("metric: %.4f" % np.mean(hits))
