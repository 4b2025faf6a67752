"""Skip-gram with negative samples: sparse gradients for the word tables and SparseAdam, a dense optimizer for the temperature.

expect: nothing
style: two optimizers, sparse embeddings, a loss written with logsigmoid
metric: share of words whose nearest neighbour is of their topic, higher is better
"""

import argparse

import torch
import torch.nn as nn
import torch.nn.functional as F

TOPICS, WORDS = 8, 12


def windows(n):
    """Two words of the same topic, now and then of any."""
    topic = torch.randint(TOPICS, (n,))
    first, second = torch.randint(WORDS, (2, n)) + topic * WORDS
    stray = torch.rand(n) < 0.2
    return first, torch.where(stray, torch.randint(TOPICS * WORDS, (n,)), second)


class SkipGram(nn.Module):
    def __init__(self, vocab, dim):
        super().__init__()
        self.u, self.v = nn.Embedding(vocab, dim, sparse=True), nn.Embedding(vocab, dim, sparse=True)
        self.scale = nn.Parameter(torch.ones(()))
        nn.init.uniform_(self.u.weight, -0.5 / dim, 0.5 / dim)
        nn.init.zeros_(self.v.weight)

    def forward(self, centre, context, negatives):
        u = self.u(centre)
        good = F.logsigmoid(self.scale * (u * self.v(context)).sum(1))
        bad = F.logsigmoid(-self.scale * torch.einsum("bd,bnd->bn", u, self.v(negatives))).sum(1)
        return -(good + bad).mean()


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--steps", type=int, default=800)
    args = parser.parse_args()
    torch.manual_seed(args.seed)
    model = SkipGram(TOPICS * WORDS, 16)
    sparse = torch.optim.SparseAdam([model.u.weight, model.v.weight], lr=0.02)
    dense = torch.optim.Adam([model.scale], lr=1e-3)
    for step in range(args.steps):
        centre, context = windows(256)
        loss = model(centre, context, torch.randint(TOPICS * WORDS, (256, 5)))
        sparse.zero_grad()
        dense.zero_grad()
        loss.backward()
        sparse.step()
        dense.step()
        if step % 100 == 0:
            print("step", step, "loss", loss.item(), "scale", model.scale.item())
    z = F.normalize(model.u.weight.detach(), dim=1)
    near = (z @ z.T - 2 * torch.eye(len(z))).argmax(1)
    print("metric:", (near // WORDS == torch.arange(len(z)) // WORDS).float().mean().item())
