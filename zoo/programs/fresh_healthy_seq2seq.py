"""Reversing sequences with a GRU encoder and decoder, padding ignored, gradients clipped.

expect: nothing
half: fresh
net: rnn
"""

import torch
from common import arguments
from torch import nn

args = arguments(width=48, lr=5e-3, steps=250)
PAD, START = 0, 1


class Seq2Seq(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.embed = nn.Embedding(12, 24, padding_idx=PAD)
        self.encoder = nn.GRU(24, width, batch_first=True)
        self.decoder = nn.GRU(24, width, batch_first=True)
        self.out = nn.Linear(width, 12)

    def forward(self, source, target):
        _, state = self.encoder(self.embed(source))
        states, _ = self.decoder(self.embed(target), state)
        return self.out(states)


model = Seq2Seq(args.width)
opt = torch.optim.Adam(model.parameters(), lr=args.lr)
criterion = nn.CrossEntropyLoss(ignore_index=PAD)
for step in range(args.steps):
    length = torch.randint(2, 5, (1,)).item()
    source = torch.randint(2, 12, (32, length))
    answer = torch.cat([source.flip(1), torch.full((32, 1), PAD)], 1)
    given = torch.cat([torch.full((32, 1), START), answer[:, :-1]], 1)
    opt.zero_grad()
    loss = criterion(model(source, given).flatten(0, 1), answer.flatten())
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    opt.step()
    if step % 50 == 0:
        print(step, loss.item())
