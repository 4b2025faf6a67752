"""Online learning of a stream whose rule changes twice: predict each small batch first, then learn from it, in order, once.

expect: nothing
style: invites 'unshuffled data', 'diverged' and 'loss rises': the order is time itself, and after each change of the rule the loss must jump and come down again
"""
import collections
import sys

import numpy as np
import torch
from torch import nn


class Stream:
    def __init__(self, seed, length=1500, batch=16):
        self.rng = np.random.default_rng(seed)
        self.length, self.batch = length, batch
        self.rules = self.rng.normal(size=(3, 6))

    def __iter__(self):
        for t in range(self.length):
            w = self.rules[t * 3 // self.length]
            season = np.sin(2 * np.pi * t / 300)
            x = self.rng.normal(size=(self.batch, 6)) + 0.3 * season
            margin = x @ w + 0.8 * np.tanh(x[:, 0] * x[:, 1])
            y = (margin + self.rng.logistic(0, 0.15, self.batch) > 0).astype(np.float32)
            yield t, torch.tensor(x, dtype=torch.float32), torch.from_numpy(y)


class OnlineClassifier:
    def __init__(self, n_features, lr=0.05):
        self.net = nn.Sequential(nn.Linear(n_features, 32), nn.ReLU(), nn.Linear(32, 1))
        self.criterion = nn.BCEWithLogitsLoss()
        self.opt = torch.optim.SGD(self.net.parameters(), lr=lr, momentum=0.9)

    @torch.no_grad()
    def predict_one_batch(self, x):
        return (self.net(x).squeeze(1) > 0).float()

    def learn_one_batch(self, x, y):
        loss = self.criterion(self.net(x).squeeze(1), y)
        self.opt.zero_grad()
        loss.backward()
        self.opt.step()
        return loss.item()


if __name__ == "__main__":
    seed = int(sys.argv[sys.argv.index("--seed") + 1]) if "--seed" in sys.argv else 0
    torch.manual_seed(seed)
    clf = OnlineClassifier(6)
    window, scores = collections.deque(maxlen=100), []
    for t, x, y in Stream(seed):
        acc = (clf.predict_one_batch(x) == y).float().mean().item()     # test, ...
        loss = clf.learn_one_batch(x, y)                                # ... then train
        scores.append(acc)
        window.append(loss)
        if t % 125 == 124:
            print(f"t {t + 1:5d} loss {np.mean(window):.3f} accuracy of the last 100 {np.mean(scores[-100:]):.3f}")
    print(f"metric: {np.mean(scores):.4f}")
