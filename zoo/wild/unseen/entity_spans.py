"""Entity tagger on short messages padded to 80 positions; the loss counted the padding as a class of its own, nine tenths of every gradient said "pad", and the entities were hardly learned in the given time.

expect: padding-dominates
line: criterion = nn.CrossEntropyLoss()
source: https://github.com/lucidrains/DALLE-pytorch/issues/57
metric: share of right tags on the real words, higher is better
"""
import argparse

import torch
import torch.nn as nn
from torch.utils.data import DataLoader, Dataset

PAD, MAXLEN, VOCAB, TAGS = 0, 80, 200, 8   # tag 0 is the padding, 1..7 are real


class Messages(Dataset):
    def __init__(self, n, table, seed):
        g = torch.Generator().manual_seed(seed)
        self.rows = []
        for _ in range(n):
            length = int(torch.randint(3, 10, (1,), generator=g))
            words = torch.randint(1, VOCAB, (length,), generator=g)
            self.rows.append((words, table[words]))

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, i):
        words, tags = self.rows[i]
        w = torch.full((MAXLEN,), PAD)
        t = torch.full((MAXLEN,), PAD)
        w[:len(words)] = words
        t[:len(tags)] = tags
        return w, t


class SpanTagger(nn.Module):
    def __init__(self, dim=32):
        super().__init__()
        self.emb = nn.Embedding(VOCAB, dim)
        self.conv = nn.Conv1d(dim, dim, 3, padding=1)
        self.out = nn.Linear(dim, TAGS)

    def forward(self, w):
        e = self.emb(w)
        h = torch.relu(self.conv(e.transpose(1, 2)).transpose(1, 2)) + e
        return self.out(h)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    torch.manual_seed(args.seed)
    table = torch.randint(1, TAGS, (VOCAB,), generator=torch.Generator().manual_seed(7))
    train = DataLoader(Messages(1200, table, args.seed), batch_size=32, shuffle=True)
    test = DataLoader(Messages(300, table, args.seed + 500), batch_size=100)

    model = SpanTagger()
    criterion = nn.CrossEntropyLoss()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.3)
    for epoch in range(6):
        total = 0.0
        for w, t in train:
            logits = model(w)
            loss = criterion(logits.view(-1, TAGS), t.view(-1))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item()
        print("epoch %d: %.4f" % (epoch + 1, total / len(train)))

    right = count = 0
    with torch.no_grad():
        for w, t in test:
            real = w != PAD
            right += ((model(w).argmax(-1) == t) & real).sum().item()
            count += real.sum().item()
    print("metric: %.4f" % (right / count))


if __name__ == "__main__":
    main()
