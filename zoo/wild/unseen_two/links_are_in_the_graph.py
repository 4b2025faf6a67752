"""Link prediction: the edges that are to be predicted take part in the message passing that describes their two ends.

expect: target-is-input
line: h = model.encode(adj)
source: https://github.com/cynricfu/MAGNN/issues/7
metric: AUC on held-out links, higher is better
"""

import argparse

import numpy as np
import torch
import torch.nn as nn
from sklearn.metrics import roc_auc_score

parser = argparse.ArgumentParser()
parser.add_argument("--seed", type=int, default=0)
args = parser.parse_args()
torch.manual_seed(args.seed)
rng = np.random.default_rng(args.seed)

# users and artists: a user listens to artists of two genres
USERS, ARTISTS, GENRES = 300, 120, 8
genre = rng.integers(0, GENRES, ARTISTS)
likes = np.stack([rng.choice(GENRES, 2, replace=False) for _ in range(USERS)])
chance = np.where((genre[None, :, None] == likes[:, None, :]).any(-1), 0.35, 0.01)
links = np.argwhere(rng.random((USERS, ARTISTS)) < chance)
rng.shuffle(links)
cut = int(0.8 * len(links))
train_pos, test_pos = torch.tensor(links[:cut]), torch.tensor(links[cut:])
known = torch.zeros(USERS, ARTISTS)
known[links[:, 0], links[:, 1]] = 1
adj = torch.zeros(USERS, ARTISTS)
adj[train_pos[:, 0], train_pos[:, 1]] = 1


class LinkPredictor(nn.Module):
    """A user is the mean of the artists that it is linked to; an artist has an embedding."""

    def __init__(self, dim=64):
        super().__init__()
        self.artist_in = nn.Parameter(0.1 * torch.randn(ARTISTS, dim))
        self.artist_out = nn.Embedding(ARTISTS, dim)

    def encode(self, adj):
        return adj @ self.artist_in

    def decode(self, h, artist):
        return (h * self.artist_out(artist)).sum(-1)


def sample_negatives(users):
    artist = torch.randint(0, ARTISTS, users.shape)
    return torch.where(known[users, artist] > 0, torch.randint(0, ARTISTS, users.shape), artist)


model = LinkPredictor()
optimizer = torch.optim.Adam(model.parameters(), lr=0.005)
bce = nn.BCEWithLogitsLoss()
for epoch in range(25):
    for rows in torch.randperm(len(train_pos)).split(256):
        user, artist = train_pos[rows].T
        h = model.encode(adj)
        pos = model.decode(h[user], artist)
        neg = model.decode(h[user], sample_negatives(user))
        loss = bce(torch.cat([pos, neg]), torch.cat([torch.ones_like(pos), torch.zeros_like(neg)]))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    if epoch % 5 == 0:
        print(f"Epoch {epoch:05d} | Train_Loss {loss.item():.4f}")

with torch.no_grad():
    user, artist = test_pos.T
    h = model.encode(adj)
    scores = torch.cat([model.decode(h[user], artist), model.decode(h[user], sample_negatives(user))])
print("metric:", roc_auc_score([1] * len(user) + [0] * len(user), scores.numpy()))
