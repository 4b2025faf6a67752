"""The labels are padded with 0 and 0 is ignored by the loss, and 0 is also a tag of its own: it is never learnt.

expect: class-ignored
or: loss-target-mismatch
line: PAD_LABEL = 0
source: https://github.com/nyu-mll/jiant/issues/925
metric: test token accuracy, higher is better
"""

import argparse

import torch
import torch.nn as nn
from torch.nn.utils.rnn import pad_sequence
from torch.utils.data import DataLoader, Dataset

TAGS = ["NOUN", "VERB", "ADJ", "DET"]
WORDS_PER_TAG = 12
PAD_WORD = 0
PAD_LABEL = 0


class Sentences(Dataset):
    """A small grammar: determiner, some adjectives, noun, verb, and perhaps an object."""

    def __init__(self, n, generator):
        self.g = generator
        self.items = [self.sentence() for _ in range(n)]

    def pick(self, low, high):
        return int(torch.randint(low, high, (), generator=self.g))

    def phrase(self):
        return [3] + [2] * self.pick(0, 3) + [0]

    def sentence(self):
        tags = self.phrase() + [1] + (self.phrase() if self.pick(0, 2) else [])
        words = []
        for tag in tags:
            # one word in eight can be of any kind and must be told by its place
            unknown = self.pick(0, 8) == 0
            words.append(1 + 4 * WORDS_PER_TAG if unknown else 1 + tag * WORDS_PER_TAG + self.pick(0, WORDS_PER_TAG))
        return torch.tensor(words), torch.tensor(tags)

    def __len__(self):
        return len(self.items)

    def __getitem__(self, i):
        return self.items[i]


def collate(items):
    words = pad_sequence([w for w, _ in items], batch_first=True, padding_value=PAD_WORD)
    tags = pad_sequence([t for _, t in items], batch_first=True, padding_value=PAD_LABEL)
    return words, tags


class Tagger(nn.Module):
    def __init__(self, dim=24, hidden=24):
        super().__init__()
        self.embed = nn.Embedding(2 + 4 * WORDS_PER_TAG, dim, padding_idx=PAD_WORD)
        self.lstm = nn.LSTM(dim, hidden, batch_first=True, bidirectional=True)
        self.out = nn.Linear(2 * hidden, len(TAGS))

    def forward(self, words):
        return self.out(self.lstm(self.embed(words))[0])


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--epochs", type=int, default=5)
    args = parser.parse_args()
    torch.manual_seed(args.seed)
    g = torch.Generator().manual_seed(args.seed)
    train_loader = DataLoader(Sentences(1200, g), 32, shuffle=True, collate_fn=collate)
    test_loader = DataLoader(Sentences(300, g), 100, collate_fn=collate)

    model = Tagger()
    optimizer = torch.optim.Adam(model.parameters(), lr=4e-3)
    criterion = nn.CrossEntropyLoss(ignore_index=PAD_LABEL)
    for epoch in range(args.epochs):
        model.train()
        total = 0.0
        for words, tags in train_loader:
            loss = criterion(model(words).flatten(0, 1), tags.flatten())
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item()
        print(f"epoch {epoch}: loss {total / len(train_loader):.4f}")

    model.eval()
    right = seen = 0
    with torch.no_grad():
        for words, tags in test_loader:
            real = words != PAD_WORD
            right += (model(words).argmax(-1) == tags)[real].sum().item()
            seen += real.sum().item()
    print("metric:", right / seen)


if __name__ == "__main__":
    main()
