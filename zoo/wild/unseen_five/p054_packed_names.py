"""Words of different lengths, padded and packed, are told apart by a bidirectional LSTM.

expect: nothing
style: collate_fn, pack_padded_sequence with enforce_sorted=False, last states of both directions
metric: test accuracy, higher is better
"""

import argparse
import random

import torch
import torch.nn as nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_sequence
from torch.utils.data import DataLoader, Dataset

SYLLABLES = {
    0: ["ka", "mo", "shi", "ta", "no", "ri", "yu"],
    1: ["ov", "sk", "ich", "ser", "gei", "vla", "dim"],
    2: ["mac", "don", "lew", "rob", "son", "wil", "ton"],
}


class Names(Dataset):
    def __init__(self, n, rng):
        self.rows = []
        for _ in range(n):
            label = rng.randrange(3)
            parts = [rng.choice(SYLLABLES[label if rng.random() < 0.75 else rng.randrange(3)]) for _ in range(rng.randint(2, 5))]
            self.rows.append((torch.tensor([ord(c) - 96 for c in "".join(parts)]), label))

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, i):
        return self.rows[i]


def collate(batch):
    words, labels = zip(*batch)
    return pad_sequence(words, batch_first=True), torch.tensor([len(w) for w in words]), torch.tensor(labels)


class Classifier(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(27, 16, padding_idx=0)
        self.lstm = nn.LSTM(16, 24, batch_first=True, bidirectional=True)
        self.out = nn.Linear(48, 3)

    def forward(self, words, lengths):
        packed = pack_padded_sequence(self.embed(words), lengths, batch_first=True, enforce_sorted=False)
        _, (h, _) = self.lstm(packed)
        return self.out(torch.cat([h[0], h[1]], 1))


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    torch.manual_seed(args.seed)
    rng = random.Random(args.seed)
    train, test = Names(1500, rng), Names(400, rng)
    model = Classifier()
    optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
    for epoch in range(6):
        model.train()
        for words, lengths, labels in DataLoader(train, batch_size=50, shuffle=True, collate_fn=collate):
            loss = nn.functional.cross_entropy(model(words, lengths), labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        print("epoch", epoch, loss.item())
    model.eval()
    with torch.no_grad():
        words, lengths, labels = collate(test.rows)
        print("metric:", (model(words, lengths).argmax(1) == labels).float().mean().item())
