"""Next item in a session: sparse embeddings with an optimizer of their own, sampled softmax with a correction for frequency.

expect: nothing
style: SparseAdam beside AdamW, negatives shared by the batch, items of different popularity, padding masked
metric: recall at 5, higher is better
"""

import argparse

import torch
import torch.nn as nn
import torch.nn.functional as F


class GRU4Rec(nn.Module):
    def __init__(self, items, d=32):
        super().__init__()
        self.table = nn.Embedding(items + 1, d, padding_idx=0, sparse=True)
        self.gru, self.drop = nn.GRU(d, 48, batch_first=True), nn.Dropout(0.1)
        self.project = nn.Linear(48, d)

    def forward(self, sessions):
        return self.project(self.gru(self.drop(self.table(sessions)))[0])


def sessions(n, items, step, popularity, longest=10):
    """Most steps go to the follower of an item; the others follow popularity."""
    rows = torch.zeros(n, longest, dtype=torch.long)
    now = torch.multinomial(popularity, n, replacement=True)
    lengths = torch.randint(4, longest + 1, (n,))
    for t in range(longest):
        rows[:, t] = torch.where(t < lengths, now + 1, 0)
        jump = torch.multinomial(popularity, n, replacement=True)
        now = torch.where(torch.rand(n) < 0.75, step[now], jump)
    return rows


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--items", type=int, default=150)
    parser.add_argument("--epochs", type=int, default=12)
    args = parser.parse_args()
    torch.manual_seed(args.seed)
    popularity = 1 / torch.arange(1, args.items + 1).float() ** 0.7
    popularity = popularity / popularity.sum()
    step = torch.randperm(args.items)
    train, test = (
        sessions(2500, args.items, step, popularity),
        sessions(500, args.items, step, popularity),
    )
    model = GRU4Rec(args.items)
    nn.init.normal_(model.table.weight[1:].data, std=0.1)
    sparse = torch.optim.SparseAdam([model.table.weight], lr=6e-3)
    dense = torch.optim.AdamW(
        [p for n, p in model.named_parameters() if n != "table.weight"], lr=3e-3
    )
    log_q = popularity.log()
    for epoch in range(args.epochs):
        model.train()
        total, count = 0.0, 0
        for idx in torch.randperm(len(train)).split(50):
            rows = train[idx]
            seen, following = rows[:, :-1], rows[:, 1:]
            real = following > 0
            h, wanted = model(seen)[real], following[real]
            negatives = torch.multinomial(popularity, 64, replacement=True) + 1
            own = (h * model.table(wanted)).sum(1, keepdim=True) - log_q[wanted - 1, None]
            other = h @ model.table(negatives).T - log_q[negatives - 1]
            other = other.masked_fill(negatives[None] == wanted[:, None], float("-inf"))
            loss = F.cross_entropy(
                torch.cat([own, other], 1), torch.zeros(len(h), dtype=torch.long)
            )
            sparse.zero_grad(), dense.zero_grad()
            loss.backward()
            sparse.step(), dense.step()
            total, count = total + loss.item() * len(h), count + len(h)
        model.eval()
        with torch.no_grad():
            real = test[:, 1:] > 0
            scores = model(test[:, :-1])[real] @ model.table.weight[1:].T
            recall = (
                (scores.topk(5).indices == test[:, 1:][real][:, None] - 1)
                .any(1)
                .float()
                .mean()
                .item()
            )
        if epoch % 3 == 2:
            print(f"Epoch {epoch + 1} loss {total / count:.4f} Recall@5 {recall:.4f}")
    print("metric:", recall)


if __name__ == "__main__":
    main()
