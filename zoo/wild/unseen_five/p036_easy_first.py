"""A curriculum: sequences come sorted by length, short ones first, and the pool grows.

expect: nothing
style: batches in an order on purpose, GRU counts ones, loss rises whenever longer examples join
metric: accuracy on the longest sequences, higher is better
"""

import argparse

import torch
import torch.nn as nn


class Counter(nn.Module):
    """Whether there are more ones than zeros."""

    def __init__(self, hidden=24):
        super().__init__()
        self.rnn = nn.GRU(1, hidden, batch_first=True)
        self.out = nn.Linear(hidden, 2)

    def forward(self, x):
        return self.out(self.rnn(x)[1][0])


def examples(n, length):
    rate = torch.rand(n, 1)
    bits = (torch.rand(n, length) < rate).float()
    return (2 * bits - 1).unsqueeze(-1), (bits.sum(1) * 2 > length).long()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    torch.manual_seed(args.seed)
    lengths = [3, 5, 7, 9, 13, 17, 21]
    pool = {length: examples(400, length) for length in lengths}
    model = Counter()
    optimizer = torch.optim.RMSprop(model.parameters(), lr=2e-3)
    for stage in range(1, len(lengths) + 1):
        for _ in range(2):
            for length in lengths[:stage]:
                x, y = pool[length]
                for i in torch.randperm(400).split(50):
                    loss = nn.functional.cross_entropy(model(x[i]), y[i])
                    optimizer.zero_grad()
                    loss.backward()
                    optimizer.step()
        print("up to length", lengths[stage - 1], "loss", loss.item())
    with torch.no_grad():
        x, y = examples(600, 21)
        print("metric:", (model(x).argmax(1) == y).float().mean().item())


if __name__ == "__main__":
    main()
