"""Learning to rank: a softmax over the documents of a query (ListNet) with lists of different lengths.

expect: nothing
style: the softmax runs over dim=1, the documents, and the target is a distribution; short lists are filled up and masked with minus infinity
"""
import argparse

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Queries(Dataset):
    """Grades 0..3 from a hidden scoring rule that differs in taste per query type."""

    def __init__(self, n, rng, rule):
        self.rows = []
        for _ in range(n):
            k = int(rng.integers(5, 13))
            kind = rng.normal(size=4)
            docs = rng.normal(size=(k, 8))
            score = docs @ rule[0] + (docs[:, :4] * kind).sum(1) + 0.3 * rng.normal(size=k)
            grade = np.digitize(score, [-1.0, 1.0, 2.5])
            x = np.concatenate([docs, np.tile(kind, (k, 1))], 1)
            self.rows.append((torch.tensor(x, dtype=torch.float32), torch.tensor(grade, dtype=torch.float32)))

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, i):
        return self.rows[i]


def collate(rows):
    k = max(len(g) for _, g in rows)
    x = torch.zeros(len(rows), k, 12)
    grade = torch.zeros(len(rows), k)
    mask = torch.zeros(len(rows), k, dtype=torch.bool)
    for i, (d, g) in enumerate(rows):
        x[i, :len(g)], grade[i, :len(g)], mask[i, :len(g)] = d, g, True
    return x, grade, mask


def listnet(scores, grade, mask):
    minus_inf = torch.finfo(scores.dtype).min
    log_p = scores.masked_fill(~mask, minus_inf).log_softmax(1)
    target = grade.masked_fill(~mask, minus_inf).softmax(1)
    return -(target * log_p).masked_fill(~mask, 0).sum(1).mean()


def ndcg(scores, grade):
    gain = 2 ** grade - 1
    discount = 1 / torch.log2(torch.arange(len(grade)) + 2.0)
    ideal = (gain.sort(descending=True).values * discount).sum()
    return ((gain[scores.argsort(descending=True)] * discount).sum() / ideal).item() if ideal > 0 else 1.0


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--seed", type=int, default=0)
    seed = ap.parse_args().seed
    torch.manual_seed(seed)
    rng = np.random.default_rng(seed)
    rule = rng.normal(size=(1, 8)) * 0.5
    loader = DataLoader(Queries(600, rng, rule), batch_size=16, shuffle=True, collate_fn=collate)
    test = Queries(200, rng, rule)
    model = nn.Sequential(nn.Linear(12, 48), nn.ReLU(), nn.Linear(48, 48), nn.ReLU(), nn.Linear(48, 1))

    def score_test():
        with torch.no_grad():
            return np.mean([ndcg(model(x).squeeze(1), g) for x, g in test])

    print("untrained NDCG %.3f" % score_test())
    optimizer = torch.optim.Adam(model.parameters(), lr=4e-3)
    for epoch in range(8):
        total = 0.0
        for x, grade, mask in loader:
            loss = listnet(model(x).squeeze(2), grade, mask)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item() / len(loader)
        print("epoch %d loss %.4f" % (epoch, total))
    print("metric: %.4f" % score_test())


if __name__ == "__main__":
    main()
