"""The mask of the loss is inverted: only the padding after the end of each word is learnt.

expect: padding-dominates
line: mask = positions[None, :] >= lengths[:, None]
source: https://github.com/mindee/doctr/pull/440
metric: share of characters read correctly, higher is better
"""
import argparse

import torch
import torch.nn as nn
import torch.nn.functional as F

CHARS, MAX_LEN, GLYPH = 14, 8, 6
EOS, PAD = CHARS, CHARS + 1


class WordCrops:
    """Words drawn as a row of small noisy glyphs; blank space after the last one."""

    def __init__(self, seed):
        g = torch.Generator().manual_seed(7)
        self.font = (torch.rand(CHARS, GLYPH, GLYPH, generator=g) > 0.5).float()
        self.g = torch.Generator().manual_seed(seed)

    def sample(self, n):
        lengths = torch.randint(3, MAX_LEN, (n,), generator=self.g)
        text = torch.randint(0, CHARS, (n, MAX_LEN), generator=self.g)
        pos = torch.arange(MAX_LEN)
        glyphs = self.font[text] * (pos[None, :] < lengths[:, None])[:, :, None, None]
        crops = glyphs.permute(0, 2, 1, 3).reshape(n, 1, GLYPH, MAX_LEN * GLYPH)
        crops = crops + 0.4 * torch.randn(crops.shape, generator=self.g)
        target = torch.where(pos[None] < lengths[:, None], text, PAD)
        target[torch.arange(n), lengths] = EOS
        return crops, target, lengths + 1


class Reader(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem = nn.Conv2d(1, 32, 3, padding=1)
        self.columns = nn.Conv2d(32, 64, (GLYPH, GLYPH), stride=(GLYPH, GLYPH))
        self.context = nn.GRU(64, 32, batch_first=True, bidirectional=True)
        self.head = nn.Linear(64, CHARS + 2)

    def forward(self, x):
        h = F.relu(self.columns(F.relu(self.stem(x)))).squeeze(2).transpose(1, 2)
        return self.head(self.context(h)[0])


def compute_loss(logits, target, lengths):
    positions = torch.arange(target.shape[1])
    cce = F.cross_entropy(logits.transpose(1, 2), target, reduction="none")
    mask = positions[None, :] >= lengths[:, None]
    return (cce * mask).sum() / mask.sum().clamp(min=1)


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--seed", type=int, default=0)
    args = ap.parse_args()
    torch.manual_seed(args.seed)
    data = WordCrops(args.seed)
    model = Reader()
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    for it in range(300):
        crops, target, lengths = data.sample(32)
        loss = compute_loss(model(crops), target, lengths)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if it % 50 == 0:
            print("it", it, "loss", loss.item())
    model.eval()
    crops, target, lengths = data.sample(400)
    with torch.no_grad():
        pred = model(crops).argmax(2)
    real = target < CHARS
    print("metric:", (pred[real] == target[real]).float().mean().item())


main()
