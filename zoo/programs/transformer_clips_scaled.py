"""Mixed precision with a loss scaler; gradients are clipped before they are unscaled.

expect: clipped-before-unscale
half: second
"""

import torch
from common import arguments, forever, loader, sentences
from torch import nn

args = arguments(width=32, lr=1e-3, steps=120, samples=800)
width = max(8, args.width // 4 * 4)
embed = nn.Embedding(20, width)
layer = nn.TransformerEncoderLayer(width, 4, 2 * width, dropout=0.0, batch_first=True)
model = nn.ModuleDict({"embed": embed, "block": layer, "head": nn.Linear(width, 2)})


def forward(tokens):
    return model["head"](model["block"](model["embed"](tokens)).mean(1))


optimizer = torch.optim.AdamW(model.parameters(), lr=args.lr)
scaler = torch.amp.GradScaler("cpu", init_scale=2.0**12)
for step, (x, y) in zip(range(args.steps), forever(loader(*sentences(args.samples)))):
    optimizer.zero_grad()
    with torch.autocast("cpu", dtype=torch.bfloat16):
        loss = nn.functional.cross_entropy(forward(x).float(), y)
    scaler.scale(loss).backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    scaler.step(optimizer)
    scaler.update()
    if step % 30 == 0:
        print(step, loss.item())
