"""Parameter groups by hand; the classifier is in none of them.

expect: optimizer-misses-parameters
site: classifier
half: fresh
net: rnn
"""

import torch
from common import arguments, loader, waves
from torch import nn

args = arguments(width=24, lr=0.005, samples=500)


class Model(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.encoder = nn.GRU(1, width, batch_first=True)
        self.norm = nn.LayerNorm(width)
        self.classifier = nn.Linear(width, 3)

    def forward(self, x):
        return self.classifier(self.norm(self.encoder(x)[0][:, -1]))


model = Model(args.width)
opt = torch.optim.AdamW([
    {"params": model.encoder.parameters(), "lr": args.lr},
    {"params": model.norm.parameters(), "weight_decay": 0.0},
])  # fmt: skip
for epoch in range(5):
    for a, b in loader(*waves(args.samples), batch=32):
        opt.zero_grad()
        loss = nn.functional.cross_entropy(model(a), b)
        loss.backward()
        opt.step()
    print(epoch, loss.item())
