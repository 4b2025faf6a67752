"""TransE: entities are put back into a ball by hand after every step, and the margin loss ends near zero.

expect: nothing
metric: share of test triples with the true tail among the first three, higher is better
"""

import argparse

import torch
import torch.nn as nn
import torch.nn.functional as F


class TransE(nn.Module):
    def __init__(self, n_entities, n_relations, dim=4, margin=1.0):
        super().__init__()
        self.entities = nn.Embedding(n_entities, dim)
        self.relations = nn.Embedding(n_relations, dim)
        bound = 6 / dim**0.5
        nn.init.uniform_(self.entities.weight, -bound, bound)
        nn.init.uniform_(self.relations.weight, -bound, bound)
        self.relations.weight.data = F.normalize(self.relations.weight.data)
        self.margin = margin

    def distance(self, h, r, t):
        return (self.entities(h) + self.relations(r) - self.entities(t)).norm(p=2, dim=-1)

    def forward(self, pos, neg):
        return F.relu(self.margin + self.distance(*pos.T) - self.distance(*neg.T)).mean()

    @torch.no_grad()
    def renormalise(self):
        norm = self.entities.weight.norm(dim=1, keepdim=True)
        self.entities.weight.mul_(4.0 / norm.clamp(min=4.0))


def city_blocks(side=9):
    """A grid of corners; relations lead east, south, and two blocks east."""
    triples = []
    for r, (dy, dx) in enumerate(((0, 1), (1, 0), (0, 2))):
        triples += [(y * side + x, r, (y + dy) * side + x + dx) for y in range(side - dy) for x in range(side - dx)]
    triples = torch.tensor(triples)
    return triples[torch.randperm(len(triples))]


def corrupt(triples, n):
    broken = triples.clone()
    side = torch.randint(0, 2, (len(triples),)) * 2
    broken[torch.arange(len(triples)), side] = torch.randint(0, n, (len(triples),))
    return broken


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    torch.manual_seed(parser.parse_args().seed)
    n = 81
    triples = city_blocks()
    train, test = triples[:180], triples[180:]
    model = TransE(n, 3)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.02)
    for epoch in range(300):
        for rows in torch.randperm(len(train)).split(45):
            loss = model(train[rows], corrupt(train[rows], n))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            model.renormalise()
        if epoch % 30 == 0:
            print(epoch, loss.item())
    with torch.no_grad():
        h, r, t = test.T
        scores = torch.stack([model.distance(h, r, torch.full_like(h, e)) for e in range(n)], 1)
        scores[torch.arange(len(h)), h] = float("inf")  # nobody is linked to itself
        print("metric:", (scores.topk(3, largest=False).indices == t[:, None]).any(1).float().mean().item())
