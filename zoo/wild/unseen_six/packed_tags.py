"""Tags by a BiLSTM over packed sentences of different lengths; padding carries the label -100 and counts for nothing.

expect: nothing
style: pack_padded_sequence, collate function, ignored targets, gradient clipping
metric: accuracy of tags, higher is better
"""

import argparse
import random

import torch
import torch.nn as nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence, pad_sequence
from torch.utils.data import DataLoader


class BiLSTMTagger(nn.Module):
    def __init__(self, vocab, tags, dim=24, hidden=32):
        super().__init__()
        self.emb = nn.Embedding(vocab, dim, padding_idx=0)
        self.lstm = nn.LSTM(dim, hidden, batch_first=True, bidirectional=True)
        self.out = nn.Linear(2 * hidden, tags)

    def forward(self, words, lengths):
        packed = pack_padded_sequence(self.emb(words), lengths, batch_first=True, enforce_sorted=False)
        h, _ = pad_packed_sequence(self.lstm(packed)[0], batch_first=True)
        return self.out(h)


def corpus(n, rng):
    """Words between an opening (1) and a closing (2) bracket have tags of their own."""
    data = []
    for _ in range(n):
        words, tags, inside = [], [], False
        for _ in range(rng.randint(5, 25)):
            w = rng.choice([1, 2]) if rng.random() < 0.25 else rng.randint(3, 39)
            inside = True if w == 1 else False if w == 2 else inside
            words.append(w)
            tags.append(w % 3 + 3 * inside)
        data.append((torch.tensor(words), torch.tensor(tags)))
    return data


def collate(batch):
    words, tags = zip(*batch)
    lengths = torch.tensor([len(w) for w in words])
    return pad_sequence(words, batch_first=True), lengths, pad_sequence(tags, batch_first=True, padding_value=-100)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    torch.manual_seed(args.seed)
    rng = random.Random(args.seed)
    train_loader = DataLoader(corpus(800, rng), batch_size=32, shuffle=True, collate_fn=collate)
    test_loader = DataLoader(corpus(200, rng), batch_size=50, collate_fn=collate)
    model = BiLSTMTagger(40, 6)
    criterion = nn.CrossEntropyLoss(ignore_index=-100)
    optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
    for epoch in range(7):
        for words, lengths, tags in train_loader:
            loss = criterion(model(words, lengths).transpose(1, 2), tags)
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 5.0)
            optimizer.step()
        print("epoch", epoch, "loss", loss.item())
    right = total = 0
    with torch.no_grad():
        for words, lengths, tags in test_loader:
            real = tags != -100
            right += (model(words, lengths).argmax(-1)[real] == tags[real]).sum().item()
            total += real.sum().item()
    print("metric:", right / total)
