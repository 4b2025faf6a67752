"""Skip-gram with negative sampling on a made-up language of four topics.

expect: nothing
style: two embedding tables, loss from logsigmoid, no labels
metric: share of words whose nearest neighbour is of the same topic, higher is better
"""

import argparse

import torch
import torch.nn as nn
import torch.nn.functional as F

TOPICS, WORDS = 4, 15


class SkipGramNeg(nn.Module):
    def __init__(self, vocab, dim=16):
        super().__init__()
        self.in_embed, self.out_embed = nn.Embedding(vocab, dim), nn.Embedding(vocab, dim)
        self.in_embed.weight.data.uniform_(-0.5, 0.5)
        self.out_embed.weight.data.uniform_(-0.5, 0.5)

    def forward(self, center, context, noise):
        v = self.in_embed(center)
        good = F.logsigmoid((v * self.out_embed(context)).sum(-1))
        bad = F.logsigmoid(-(self.out_embed(noise) @ v.unsqueeze(-1)).squeeze(-1)).sum(-1)
        return -(good + bad).mean()


def pairs(n):
    topic = torch.randint(TOPICS, (n,))
    word = topic * WORDS + torch.randint(WORDS, (n,))
    stay = torch.rand(n) < 0.8
    other = torch.where(stay, topic, torch.randint(TOPICS, (n,))) * WORDS + torch.randint(WORDS, (n,))
    return word, other


parser = argparse.ArgumentParser()
parser.add_argument("--seed", type=int, default=0)
torch.manual_seed(parser.parse_args().seed)
model = SkipGramNeg(TOPICS * WORDS)
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
for step in range(800):
    center, context = pairs(256)
    noise = torch.randint(TOPICS * WORDS, (256, 5))
    loss = model(center, context, noise)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 100 == 0:
        print("step", step, "loss", loss.item())
e = F.normalize(model.in_embed.weight.detach(), dim=1)
sim = (e @ e.T).fill_diagonal_(-1)
topic = torch.arange(TOPICS * WORDS) // WORDS
print("metric:", (topic[sim.argmax(1)] == topic).float().mean().item())
