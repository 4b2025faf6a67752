"""Sentiment with an LSTM over padded reviews: the last hidden state is that of the padding, which is long for most of them.

expect: padding-read
or: padding-dominates
line: output, (hidden, cell) = self.rnn(embedded)
source: https://github.com/bentrevett/pytorch-sentiment-analysis/issues/86
metric: test accuracy, higher is better
"""

import argparse
import random

import torch
import torch.nn as nn
import torch.optim as optim

PAD = 0


class RNN(nn.Module):
    def __init__(self, vocab_size, embedding_dim, hidden_dim, output_dim, pad_idx):
        super().__init__()
        self.embedding = nn.Embedding(vocab_size, embedding_dim, padding_idx=pad_idx)
        self.rnn = nn.LSTM(embedding_dim, hidden_dim)
        self.fc = nn.Linear(hidden_dim, output_dim)

    def forward(self, text, text_lengths):
        # text = [sent len, batch size]
        embedded = self.embedding(text)
        output, (hidden, cell) = self.rnn(embedded)
        return self.fc(hidden[-1])


def reviews(n, rng):
    """A word near the end decides, turned around if a "not" stands before it."""
    data = []
    for _ in range(n):
        length = rng.randint(5, 14) if rng.random() < 0.9 else rng.randint(150, 200)
        words = [rng.randint(10, 60) for _ in range(length)]
        good = rng.random() < 0.5
        negated = rng.random() < 0.5
        words[-2] = 1 if negated else 2
        words[-1] = rng.randint(3, 5) if good else rng.randint(6, 8)
        data.append((words, float(good != negated)))
    return data


def iterator(data, batch_size, rng=None):
    order = list(range(len(data)))
    if rng:
        rng.shuffle(order)
    for i in range(0, len(order), batch_size):
        part = [data[j] for j in order[i : i + batch_size]]
        lengths = torch.tensor([len(w) for w, _ in part])
        text = torch.full((int(lengths.max()), len(part)), PAD)
        for k, (words, _) in enumerate(part):
            text[: len(words), k] = torch.tensor(words)
        yield text, lengths, torch.tensor([y for _, y in part])


def train(model, data, optimizer, criterion, rng):
    epoch_loss = 0
    model.train()
    for text, lengths, label in iterator(data, 32, rng):
        optimizer.zero_grad()
        loss = criterion(model(text, lengths).squeeze(1), label)
        loss.backward()
        optimizer.step()
        epoch_loss += loss.item()
    return epoch_loss / (len(data) / 32)


def evaluate(model, data):
    right = 0
    model.eval()
    with torch.no_grad():
        for text, lengths, label in iterator(data, 64):
            right += (torch.round(torch.sigmoid(model(text, lengths).squeeze(1))) == label).sum().item()
    return right / len(data)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--epochs", type=int, default=4)
    args = parser.parse_args()
    torch.manual_seed(args.seed)
    rng = random.Random(args.seed)
    train_data, test_data = reviews(1500, rng), reviews(500, rng)
    model = RNN(61, 32, 32, 1, PAD)
    optimizer = optim.Adam(model.parameters(), lr=5e-3)
    for epoch in range(args.epochs):
        print("Epoch: %02d Train Loss: %.3f" % (epoch + 1, train(model, train_data, optimizer, nn.BCEWithLogitsLoss(), rng)))
    print("metric:", evaluate(model, test_data))
