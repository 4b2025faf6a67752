"""A mixture of experts with top-2 routing and a small balance loss; in a step some experts get few samples.

expect: nothing
style: sparse mixture of experts with noisy gating (looks like parameters without gradient and an unbalanced extra term)
"""

import argparse

import torch
import torch.nn as nn
import torch.nn.functional as F


class MoE(nn.Module):
    def __init__(self, input_size, output_size, num_experts=6, hidden_size=24, k=2):
        super().__init__()
        self.k = k
        self.experts = nn.ModuleList(
            [nn.Sequential(nn.Linear(input_size, hidden_size), nn.ReLU(), nn.Linear(hidden_size, output_size)) for _ in range(num_experts)]
        )
        self.w_gate = nn.Linear(input_size, num_experts, bias=False)

    def forward(self, x, loss_coef=1e-2):
        logits = self.w_gate(x)
        if self.training:
            logits = logits + 0.3 * torch.randn_like(logits)
        top, index = logits.topk(self.k, dim=1)
        gates = torch.zeros_like(logits).scatter(1, index, F.softmax(top, dim=1))
        importance = gates.sum(0)
        balance = importance.var() / (importance.mean() ** 2 + 1e-10)
        out = torch.zeros(len(x), self.experts[0][-1].out_features)
        for e, expert in enumerate(self.experts):
            rows = (gates[:, e] > 0).nonzero().squeeze(1)
            if len(rows):
                out = out.index_add(0, rows, gates[rows, e, None] * expert(x[rows]))
        return out, loss_coef * balance


def regions(n, laws):
    """A different linear law in every region of the plane of the first two features."""
    x = torch.randn(n, 6)
    region = 2 * (x[:, 0] > 0).long() + (x[:, 1] > 0).long()
    y = torch.einsum("nd,nde->ne", x, laws[region])
    return x, y + 0.05 * torch.randn_like(y)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--steps", type=int, default=500)
    args = parser.parse_args()
    torch.manual_seed(args.seed)
    laws = torch.randn(4, 6, 3) / 2
    model = MoE(6, 3)
    optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
    for step in range(args.steps):
        model.train()
        x, y = regions(64, laws)
        y_hat, aux_loss = model(x)
        loss = F.mse_loss(y_hat, y)
        total_loss = loss + aux_loss
        optimizer.zero_grad()
        total_loss.backward()
        optimizer.step()
        if step % 100 == 0:
            print("step {} loss {:.3f} aux {:.4f}".format(step, loss.item(), aux_loss.item()))
    model.eval()
    with torch.no_grad():
        x, y = regions(1000, laws)
        print("metric: {:.4f}".format((F.mse_loss(model(x)[0], y) / y.var()).item()))


main()
