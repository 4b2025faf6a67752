"""The base class makes the optimizer in __init__, the subclass then builds its own layers: the optimizer trains the old ones.

expect: stale-optimizer
or: optimizer-misses-parameters
line: self.cell = nn.GRUCell(
source: https://github.com/pytorch/pytorch/issues/14467
metric: accuracy on unseen bracket words, higher is better
"""

import argparse
import random

import torch
from torch import nn

ALPHABET = "ab()"


class RNN(nn.Module):
    """What all my recurrent networks have in common."""

    def __init__(self, hiddenSize, learningRate):
        super().__init__()
        self.hiddenSize = hiddenSize
        self.cell = nn.RNNCell(len(ALPHABET), hiddenSize)
        self.out = nn.Linear(hiddenSize, 2)
        self.lossFunction = nn.CrossEntropyLoss()
        self.optimizer = torch.optim.Adam(self.parameters(), lr=learningRate)

    def forward(self, words):
        h = torch.zeros(words.shape[0], self.hiddenSize)
        for t in range(words.shape[1]):
            h = self.forwardOneStep(words[:, t], h)
        return self.out(h)

    def forwardOneStep(self, x, h):
        raise NotImplementedError

    def trainOnBatch(self, words, labels):
        self.optimizer.zero_grad()
        loss = self.lossFunction(self(words), labels)
        loss.backward()
        self.optimizer.step()
        return loss.item()


class MemoryRNN(RNN):
    def __init__(self, hiddenSize, learningRate):
        super().__init__(hiddenSize, learningRate)
        self.cell = nn.GRUCell(len(ALPHABET), hiddenSize)
        self.out = nn.Sequential(nn.Linear(hiddenSize, 16), nn.ReLU(), nn.Linear(16, 2))

    def forwardOneStep(self, x, h):
        return self.cell(x, h)


def randomWord(length):
    return "".join(random.choice(ALPHABET) for _ in range(length))


def isValid(word):
    """More opening than closing brackets."""
    return int(word.count("(") > word.count(")"))


def batch(size, length=10):
    words = [randomWord(length) for _ in range(size)]
    x = torch.zeros(size, length, len(ALPHABET))
    for i, w in enumerate(words):
        for t, c in enumerate(w):
            x[i, t, ALPHABET.index(c)] = 1
    return x, torch.tensor([isValid(w) for w in words])


if __name__ == "__main__":
    p = argparse.ArgumentParser()
    p.add_argument("--seed", type=int, default=0)
    seed = p.parse_args().seed
    random.seed(seed)
    torch.manual_seed(seed)

    net = MemoryRNN(hiddenSize=16, learningRate=0.01)
    for step in range(250):
        loss = net.trainOnBatch(*batch(32))
        if step % 50 == 0:
            print(step, loss)
    with torch.no_grad():
        x, y = batch(500)
        accuracy = (net(x).argmax(1) == y).float().mean()
    print("metric:", round(accuracy.item(), 4))
