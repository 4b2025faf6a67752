"""A character model that carries its state over and detaches it, batch by batch.

expect: nothing
half: fresh
net: rnn
"""

import torch
from common import arguments
from torch import nn

args = arguments(width=64, lr=5e-3, steps=200)
text = torch.tensor([ord(c) - 97 for c in "thequickbrownfoxjumpsoverthelazydog" * 120])


class CharLM(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.embed = nn.Embedding(26, 16)
        self.lstm = nn.LSTM(16, width)
        self.out = nn.Linear(width, 26)

    def forward(self, x, state):
        y, state = self.lstm(self.embed(x), state)
        return self.out(y), state


model = CharLM(args.width)
opt = torch.optim.RMSprop(model.parameters(), lr=args.lr)
state = None
for step in range(args.steps):
    at = (step * 10) % (len(text) - 20 * 8 - 11)
    x = torch.stack([text[at + k * 20 : at + k * 20 + 10] for k in range(8)], 1)
    y = torch.stack([text[at + k * 20 + 1 : at + k * 20 + 11] for k in range(8)], 1)
    if state is not None:
        state = tuple(each.detach() for each in state)
    scores, state = model(x, state)
    loss = nn.functional.cross_entropy(scores.view(-1, 26), y.view(-1))
    opt.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 0.5)
    opt.step()
    if step % 40 == 0:
        print(step, loss.item())
