"""Patches, a class token, layer norms, warm-up: a vision transformer on digits in bfloat16.

expect: nothing
half: fresh
net: transformer
"""

import torch
from common import arguments, digits, forever, loader
from torch import nn

args = arguments(width=48, depth=2, lr=2e-3, steps=160, samples=1000)
width = max(16, args.width // 8 * 8)


class ViT(nn.Module):
    def __init__(self, depth):
        super().__init__()
        self.patch = nn.Conv2d(1, width, 2, 2)
        self.token = nn.Parameter(torch.zeros(1, 1, width))
        self.place = nn.Parameter(0.02 * torch.randn(1, 17, width))
        layer = nn.TransformerEncoderLayer(width, 4, 2 * width, 0.1, "gelu", batch_first=True, norm_first=True)
        self.blocks = nn.TransformerEncoder(layer, depth, enable_nested_tensor=False)
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, 10)
        nn.init.zeros_(self.head.weight)

    def forward(self, x):
        x = self.patch(x).flatten(2).transpose(1, 2)
        x = torch.cat([self.token.expand(len(x), -1, -1), x], 1) + self.place
        return self.head(self.norm(self.blocks(x))[:, 0])


x, y, _, _ = digits(args.samples, image=True)
model = ViT(args.depth)
opt = torch.optim.AdamW(model.parameters(), lr=args.lr, weight_decay=0.05)
warm = torch.optim.lr_scheduler.LambdaLR(opt, lambda step: min(1.0, (step + 1) / 30))
for step, (a, b) in zip(range(args.steps), forever(loader(x, y))):
    with torch.autocast("cpu", dtype=torch.bfloat16):
        loss = nn.functional.cross_entropy(model(a), b)
    opt.zero_grad()
    loss.backward()
    opt.step()
    warm.step()
    if step % 40 == 0:
        print(step, loss.item())
