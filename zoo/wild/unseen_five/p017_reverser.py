"""A transformer is to reverse words, and its decoder is fed the very letters that it is to say: it copies, and cannot write a word alone.

expect: target-is-input
or: sees-the-future
line: logits = model(src, tgt)
source: https://discuss.pytorch.org/t/nn-transformer-explaination/53175/20
metric: share of letters right when decoding alone, higher is better
"""

import argparse
import math

import torch
import torch.nn as nn

START, LETTERS, LENGTH = 0, 12, 6


class Reverser(nn.Module):
    def __init__(self, d=48):
        super().__init__()
        self.embed = nn.Embedding(LETTERS + 1, d)
        position = torch.arange(LENGTH + 1).unsqueeze(1)
        div = torch.exp(torch.arange(0, d, 2) * (-math.log(10000.0) / d))
        pe = torch.zeros(LENGTH + 1, d)
        pe[:, 0::2], pe[:, 1::2] = torch.sin(position * div), torch.cos(position * div)
        self.register_buffer("pe", pe)
        self.transformer = nn.Transformer(d, 4, 2, 2, 96, dropout=0.0, batch_first=True)
        self.head = nn.Linear(d, LETTERS + 1)

    def forward(self, src, tgt):
        mask = nn.Transformer.generate_square_subsequent_mask(tgt.size(1))
        src = self.embed(src) + self.pe[: src.size(1)]
        tgt = self.embed(tgt) + self.pe[: tgt.size(1)]
        return self.head(self.transformer(src, tgt, tgt_mask=mask))

    @torch.no_grad()
    def write(self, src):
        said = torch.full((len(src), 1), START)
        for _ in range(LENGTH):
            nxt = self(src, said)[:, -1].argmax(-1, keepdim=True)
            said = torch.cat([said, nxt], 1)
        return said[:, 1:]


parser = argparse.ArgumentParser()
parser.add_argument("--seed", type=int, default=0)
parser.add_argument("--steps", type=int, default=350)
args = parser.parse_args()
torch.manual_seed(args.seed)
model = Reverser()
optim = torch.optim.Adam(model.parameters(), lr=2e-3)
loss_fn = nn.CrossEntropyLoss()
for i in range(args.steps):
    src = torch.randint(1, LETTERS + 1, (48, LENGTH))
    tgt = src.flip(1)
    logits = model(src, tgt)
    loss = loss_fn(logits.reshape(-1, LETTERS + 1), tgt.reshape(-1))
    optim.zero_grad()
    loss.backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optim.step()
    if i % 50 == 0:
        print("iteration", i, "loss", round(loss.item(), 4))
model.eval()
src = torch.randint(1, LETTERS + 1, (300, LENGTH))
print("metric:", (model.write(src) == src.flip(1)).float().mean().item())
