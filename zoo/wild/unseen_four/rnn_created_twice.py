"""The RNN is created a second time after the optimizer: the optimizer still steps on the first one.

expect: stale-optimizer
or: optimizer-misses-parameters
line: optimizer = torch.optim.SGD(rnn.parameters()
source: https://github.com/spro/practical-pytorch/issues/9
metric: test accuracy, higher is better
"""
import argparse
import random

import torch
import torch.nn as nn

LETTERS = "abcdefghijklmnop"
ENDINGS = {"alda": ["ova", "iga"], "bren": ["ick", "oll"], "cali": ["ino", "ela"], "dora": ["sen", "pen"]}
CATEGORIES = sorted(ENDINGS)
LETTERS = sorted(set("".join("".join(v) for v in ENDINGS.values())) | set(LETTERS))

ap = argparse.ArgumentParser()
ap.add_argument("--seed", type=int, default=0)
seed = ap.parse_args().seed
torch.manual_seed(seed)
random.seed(seed)


def random_name(category):
    stem = "".join(random.choice(LETTERS) for _ in range(random.randint(3, 6)))
    return stem + random.choice(ENDINGS[category])


def line_to_tensor(line):
    t = torch.zeros(len(line), 1, len(LETTERS))
    for i, ch in enumerate(line):
        t[i][0][LETTERS.index(ch)] = 1
    return t


class RNN(nn.Module):
    def __init__(self, input_size, hidden_size, output_size):
        super().__init__()
        self.hidden_size = hidden_size
        self.i2h = nn.Linear(input_size + hidden_size, hidden_size)
        self.i2o = nn.Linear(hidden_size, output_size)

    def forward(self, line):
        hidden = torch.zeros(1, self.hidden_size)
        for letter in line:
            hidden = torch.tanh(self.i2h(torch.cat((letter, hidden), 1)))
        return self.i2o(hidden)


n_hidden = 64
rnn = RNN(len(LETTERS), n_hidden, len(CATEGORIES))
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.SGD(rnn.parameters(), lr=0.05)


def train(category, line):
    output = rnn(line_to_tensor(line))
    loss = criterion(output, torch.tensor([CATEGORIES.index(category)]))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return loss.item()


rnn = RNN(len(LETTERS), n_hidden, len(CATEGORIES))

current = 0.0
for it in range(1, 1401):
    category = random.choice(CATEGORIES)
    current += train(category, random_name(category))
    if it % 200 == 0:
        print(it, current / 200)
        current = 0.0

right = 0
with torch.no_grad():
    for _ in range(300):
        category = random.choice(CATEGORIES)
        right += int(rnn(line_to_tensor(random_name(category))).argmax()) == CATEGORIES.index(category)
print("metric:", right / 300)
