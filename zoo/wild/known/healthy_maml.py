"""MAML on sine waves: the inner step is done by hand on copies of the weights, the outer one by Adam.

expect: nothing
style: meta-learning with second-order gradients through functional weights
"""

import argparse
import math

import torch
import torch.nn.functional as F
from torch import nn


class Learner(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.vars = nn.ParameterList()
        for n_out, n_in in config:
            w = nn.Parameter(torch.empty(n_out, n_in))
            nn.init.xavier_normal_(w)
            self.vars.append(w)
            self.vars.append(nn.Parameter(torch.zeros(n_out)))

    def forward(self, x, vars=None):
        vars = list(self.vars) if vars is None else vars
        for i in range(0, len(vars), 2):
            x = F.linear(x, vars[i], vars[i + 1])
            if i + 2 < len(vars):
                x = torch.tanh(x)
        return x


class Sinusoid:
    def sample(self):
        amplitude, phase = 0.5 + 2 * torch.rand(1), math.pi * torch.rand(1)

        def points(n):
            x = 5 * torch.rand(n, 1) - 2.5
            return x, amplitude * torch.sin(x + phase)

        return points(10), points(10)


class Meta(nn.Module):
    def __init__(self, meta_lr=5e-3, update_lr=0.1, task_num=4):
        super().__init__()
        self.net = Learner([(32, 1), (32, 32), (1, 32)])
        self.meta_optim = torch.optim.Adam(self.net.parameters(), lr=meta_lr)
        self.update_lr, self.task_num = update_lr, task_num

    def adapt(self, support, steps, create_graph):
        fast = list(self.net.vars)
        for _ in range(steps):
            loss = F.mse_loss(self.net(support[0], fast), support[1])
            grad = torch.autograd.grad(loss, fast, create_graph=create_graph)
            fast = [p - self.update_lr * g for p, g in zip(fast, grad)]
        return fast

    def forward(self, tasks):
        loss_q = 0
        for _ in range(self.task_num):
            support, query = tasks.sample()
            fast = self.adapt(support, 2, True)
            loss_q = loss_q + F.mse_loss(self.net(query[0], fast), query[1]) / self.task_num
        self.meta_optim.zero_grad()
        loss_q.backward()
        self.meta_optim.step()
        return loss_q.item()


def main():
    argparser = argparse.ArgumentParser()
    argparser.add_argument("--seed", type=int, default=0)
    argparser.add_argument("--epoch", type=int, default=300)
    args = argparser.parse_args()
    torch.manual_seed(args.seed)
    maml, tasks = Meta(), Sinusoid()
    for step in range(args.epoch):
        loss = maml(tasks)
        if step % 60 == 0:
            print("step:", step, "query loss:", loss)
    before, after = 0.0, 0.0
    for _ in range(50):
        support, query = tasks.sample()
        before += F.mse_loss(maml.net(query[0]), query[1]).item() / 50
        fast = maml.adapt(support, 3, False)
        after += F.mse_loss(maml.net(query[0], fast), query[1]).item() / 50
    print("metric: %.4f (before adapting %.4f)" % (after, before))


if __name__ == "__main__":
    main()
