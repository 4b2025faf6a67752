"""Words left out are to be guessed; most positions are ignored by the loss.

expect: nothing
half: fresh
net: transformer
"""

import torch
from common import arguments
from torch import nn

args = arguments(width=48, lr=3e-3, steps=220)
width = max(16, args.width // 8 * 8)


class MLM(nn.Module):
    def __init__(self):
        super().__init__()
        self.word = nn.Embedding(17, width)
        self.place = nn.Parameter(0.1 * torch.randn(10, width))
        block = nn.TransformerEncoderLayer(width, 4, 2 * width, 0.0, batch_first=True)
        self.body = nn.TransformerEncoder(block, 1, enable_nested_tensor=False)
        self.out = nn.Linear(width, 17)

    def forward(self, ids):
        return self.out(self.body(self.word(ids) + self.place))


model = MLM()
opt = torch.optim.AdamW(model.parameters(), lr=args.lr)
for step in range(args.steps):
    start = torch.randint(0, 16, (32, 1))
    ids = (start + torch.arange(10)) % 16
    hidden = torch.rand(ids.shape) < 0.2
    hidden[:, 3] = True
    target = torch.where(hidden, ids, -100)
    out = model(torch.where(hidden, 16, ids))
    loss = nn.functional.cross_entropy(out.transpose(1, 2), target, ignore_index=-100)
    opt.zero_grad(set_to_none=True)
    loss.backward()
    opt.step()
    if step % 50 == 0:
        print(step, loss.item())
