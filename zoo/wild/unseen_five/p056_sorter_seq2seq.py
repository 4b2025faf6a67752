"""A GRU encoder and decoder sort digits; the decoder is fed the truth or its own words by a coin whose bias changes.

expect: nothing
style: scheduled sampling, one step at a time, loss summed over steps
metric: share of digits right when decoding alone, higher is better
"""

import argparse
import random

import torch
import torch.nn as nn

GO, N, LENGTH = 8, 8, 5


class Encoder(nn.Module):
    def __init__(self, d=64):
        super().__init__()
        self.embedding, self.gru = nn.Embedding(N + 1, d), nn.GRU(d, d)

    def forward(self, x):
        return self.gru(self.embedding(x.T))[1]


class Decoder(nn.Module):
    def __init__(self, d=64):
        super().__init__()
        self.embedding, self.gru, self.out = nn.Embedding(N + 1, d), nn.GRU(d, d), nn.Linear(d, N)

    def forward(self, token, hidden):
        output, hidden = self.gru(self.embedding(token).unsqueeze(0), hidden)
        return self.out(output[0]), hidden


def train_step(x, y, encoder, decoder, optimizers, forcing):
    for o in optimizers:
        o.zero_grad()
    hidden, token, loss = encoder(x), torch.full((len(x),), GO), 0
    for t in range(LENGTH):
        logits, hidden = decoder(token, hidden)
        loss = loss + nn.functional.cross_entropy(logits, y[:, t])
        token = y[:, t] if random.random() < forcing else logits.argmax(1).detach()
    loss.backward()
    for o in optimizers:
        o.step()
    return loss.item() / LENGTH


@torch.no_grad()
def evaluate(encoder, decoder, n=400):
    x = torch.randint(0, N, (n, LENGTH))
    hidden, token, out = encoder(x), torch.full((n,), GO), []
    for _ in range(LENGTH):
        logits, hidden = decoder(token, hidden)
        token = logits.argmax(1)
        out.append(token)
    return (torch.stack(out, 1) == x.sort(1).values).float().mean().item()


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--iters", type=int, default=500)
    args = parser.parse_args()
    torch.manual_seed(args.seed)
    random.seed(args.seed)
    encoder, decoder = Encoder(), Decoder()
    optimizers = [torch.optim.Adam(m.parameters(), lr=4e-3) for m in (encoder, decoder)]
    for i in range(args.iters):
        x = torch.randint(0, N, (64, LENGTH))
        loss = train_step(x, x.sort(1).values, encoder, decoder, optimizers, forcing=1 - 0.5 * i / args.iters)
        if i % 100 == 0:
            print("iteration", i, "loss", round(loss, 4))
    print("metric:", evaluate(encoder, decoder))
