"""A transformer for classification, every matrix of which was set to one constant.

expect: symmetric-init
site: fc1
half: fresh
net: transformer
"""

import torch
from common import arguments, loader, sentences
from torch import nn

args = arguments(width=32, lr=1e-3, samples=600)


class Encoder(nn.Module):
    def __init__(self, width):
        super().__init__()
        width = max(8, width // 4 * 4)
        self.tokens = nn.Embedding(20, width)
        self.mix = nn.Linear(width, width)
        self.fc1 = nn.Linear(width, 2 * width)
        self.fc2 = nn.Linear(2 * width, 2)

    def forward(self, ids):
        x = self.tokens(ids)
        weights = torch.softmax(self.mix(x) @ x.transpose(1, 2), -1)
        return self.fc2(torch.relu(self.fc1((weights @ x).mean(1))))


model = Encoder(args.width)
for p in model.parameters():
    nn.init.constant_(p, 0.02)
opt = torch.optim.AdamW(model.parameters(), lr=args.lr)
for epoch in range(5):
    for ids, label in loader(*sentences(args.samples), batch=32):
        opt.zero_grad()
        loss = nn.functional.cross_entropy(model(ids), label)
        loss.backward()
        opt.step()
    print(epoch, loss.item())
