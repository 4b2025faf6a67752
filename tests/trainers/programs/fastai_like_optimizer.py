"""A learner with an optimizer of its own, as fastai has one: steppers over lists of parameters.

expect: nothing
"""

import torch
from sklearn.datasets import load_digits
from torch import nn

torch.manual_seed(0)


class Optimizer:
    def __init__(self, params, lr, mom=0.9):
        self.params, self.lr, self.mom = list(params), lr, mom
        self.state = {p: torch.zeros_like(p) for p in self.params}

    def step(self):
        for p in self.params:
            if p.grad is not None:
                average = self.state[p].mul_(self.mom).add_(p.grad.data)
                p.data.add_(average, alpha=-self.lr)

    def zero_grad(self):
        for p in self.params:
            if p.grad is not None:
                p.grad.detach_()
                p.grad.zero_()


class Learner:
    def __init__(self, model, loss_func, lr):
        self.model, self.loss_func = model, loss_func
        self.opt = Optimizer(model.parameters(), lr)

    def one_batch(self, xb, yb):
        self.pred = self.model(xb)
        self.loss = self.loss_func(self.pred, yb)
        if not self.model.training:
            return
        self.loss.backward()
        self.opt.step()
        self.opt.zero_grad()

    def fit(self, epochs, x, y):
        for epoch in range(epochs):
            self.model.train()
            for rows in torch.randperm(1400).split(32):
                self.one_batch(x[rows], y[rows])
            self.model.eval()
            with torch.no_grad():
                self.one_batch(x[1400:], y[1400:])
            print(epoch, self.loss.item())


digits = load_digits()
x, y = torch.tensor(digits.data / 16, dtype=torch.float32), torch.tensor(digits.target)
learn = Learner(
    nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.BatchNorm1d(64), nn.Linear(64, 10)),
    nn.CrossEntropyLoss(),
    0.02,
)
learn.fit(6, x, y)
print("logged: eval", learn.loss.item())
