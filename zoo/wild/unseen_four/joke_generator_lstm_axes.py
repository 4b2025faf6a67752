"""A text model feeds (batch, sequence) to an LSTM that expects the sequence first.

expect: samples-mixed
line: self.lstm = nn.LSTM(
source: https://github.com/closeheat/pytorch-lstm-text-generation-tutorial/issues/3
metric: accuracy of the next token on new text, higher is better
"""
import argparse

import numpy as np
import torch
from torch import nn, optim
from torch.utils.data import DataLoader, Dataset


class Model(nn.Module):
    def __init__(self, n_vocab):
        super().__init__()
        self.lstm_size = 64
        self.embedding_dim = 32
        self.num_layers = 1
        self.embedding = nn.Embedding(n_vocab, self.embedding_dim)
        self.lstm = nn.LSTM(
            input_size=self.embedding_dim,
            hidden_size=self.lstm_size,
            num_layers=self.num_layers,
        )
        self.fc = nn.Linear(self.lstm_size, n_vocab)

    def forward(self, x):
        embed = self.embedding(x)
        output, state = self.lstm(embed)
        return self.fc(output)


class Text(Dataset):
    """Words of an invented grammar: the next word follows from the last two, with a few slips."""

    def __init__(self, table, n_words, length, rng):
        self.length = length
        words = [0, 1]
        while len(words) < n_words:
            if rng.random() < 0.05:
                words.append(int(rng.integers(0, len(table))))
            else:
                words.append(int(table[words[-2], words[-1]]))
        self.words = torch.tensor(words)

    def __len__(self):
        return len(self.words) // self.length - 1

    def __getitem__(self, i):
        a = i * self.length
        return self.words[a:a + self.length], self.words[a + 1:a + self.length + 1]


def train(dataset, model, args):
    model.train()
    criterion = nn.CrossEntropyLoss()
    optimizer = optim.Adam(model.parameters(), lr=0.005)
    for epoch in range(args.max_epochs):
        for x, y in DataLoader(dataset, batch_size=args.batch_size, shuffle=True):
            optimizer.zero_grad()
            loss = criterion(model(x).transpose(1, 2), y)
            loss.backward()
            optimizer.step()
        print({"epoch": epoch, "loss": loss.item()})


parser = argparse.ArgumentParser()
parser.add_argument("--seed", type=int, default=0)
parser.add_argument("--max-epochs", type=int, default=8)
parser.add_argument("--batch-size", type=int, default=32)
args = parser.parse_args()
torch.manual_seed(args.seed)
rng = np.random.default_rng(args.seed)
table = rng.integers(0, 12, (12, 12))
model = Model(12)
train(Text(table, 24000, 12, rng), model, args)

model.eval()
right = total = 0
with torch.no_grad():
    for x, y in DataLoader(Text(table, 4000, 12, rng), batch_size=args.batch_size):
        right += (model(x).argmax(2) == y).sum().item()
        total += y.numel()
print("metric:", right / total)
