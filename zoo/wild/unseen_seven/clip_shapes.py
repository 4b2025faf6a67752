"""Pictures and their captions in one space: a symmetric loss over the batch with a temperature that is learnt and capped.

expect: nothing
style: two encoders, duplicates of a caption within a batch, no negatives mined, logit scale clamped in place
metric: recall at 1 among all captions, higher is better
"""

import argparse
import itertools

import torch
import torch.nn as nn
import torch.nn.functional as F

SHAPES, COLOURS, PLACES = (
    ("disc", "square", "cross"),
    ("red", "green", "blue"),
    ("left", "right", "top", "bottom"),
)
CAPTIONS = list(itertools.product(SHAPES, COLOURS, PLACES))
WORDS = ["<pad>", "a", "at", "the", *SHAPES, *COLOURS, *PLACES]


def draw(i, side=16):
    shape, colour, place = CAPTIONS[i]
    cy, cx = {"left": (8, 4), "right": (8, 11), "top": (4, 8), "bottom": (11, 8)}[place]
    cy, cx = cy + torch.randint(-1, 2, ()).item(), cx + torch.randint(-1, 2, ()).item()
    yy, xx = torch.meshgrid(torch.arange(side), torch.arange(side), indexing="ij")
    dy, dx = (yy - cy).abs(), (xx - cx).abs()
    mask = {
        "disc": dy**2 + dx**2 <= 9,
        "square": (dy <= 2) & (dx <= 2),
        "cross": ((dy == 0) & (dx <= 3)) | ((dx == 0) & (dy <= 3)),
    }[shape]
    image = 0.2 * torch.randn(3, side, side)
    image[COLOURS.index(colour)] += mask
    return image


def tokens(i):
    shape, colour, place = CAPTIONS[i]
    line = (
        ["a", colour, shape, "at", "the", place] if torch.rand(()) < 0.5 else [colour, shape, place]
    )
    ids = [WORDS.index(w) for w in line]
    return torch.tensor(ids + [0] * (6 - len(ids)))


class CLIP(nn.Module):
    def __init__(self, d=32):
        super().__init__()
        self.visual = nn.Sequential(
            nn.Conv2d(3, 24, 3, 2, 1),
            nn.ReLU(),
            nn.Conv2d(24, 32, 3, 2, 1),
            nn.ReLU(),
            nn.Flatten(),
            nn.Linear(512, d),
        )
        self.words = nn.EmbeddingBag(len(WORDS), 48, mode="mean", padding_idx=0)
        self.text = nn.Sequential(nn.Linear(48, 48), nn.GELU(), nn.Linear(48, d))
        self.logit_scale = nn.Parameter(torch.tensor(1 / 0.07).log())

    def forward(self, images, ids):
        a, b = (
            F.normalize(self.visual(images), dim=-1),
            F.normalize(self.text(self.words(ids)), dim=-1),
        )
        return self.logit_scale.exp() * a @ b.T


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--steps", type=int, default=350)
    args = parser.parse_args()
    torch.manual_seed(args.seed)
    model = CLIP()
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3, weight_decay=0.02)
    stock = [(i, draw(i), tokens(i)) for i in torch.randint(len(CAPTIONS), (2000,)).tolist()]
    for step in range(args.steps):
        _, images, ids = zip(*(stock[i] for i in torch.randint(len(stock), (32,)).tolist()))
        logits = model(torch.stack(images), torch.stack(ids))
        truth = torch.arange(32)
        loss = (F.cross_entropy(logits, truth) + F.cross_entropy(logits.T, truth)) / 2
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        with torch.no_grad():
            model.logit_scale.clamp_(0, 4.6052)
        if step % 50 == 0:
            print(
                f"step {step} clip_loss {loss.item():.3f} scale {model.logit_scale.exp().item():.1f}"
            )
    truth = torch.randint(len(CAPTIONS), (300,))
    with torch.no_grad():
        logits = model(
            torch.stack([draw(i) for i in truth.tolist()]),
            torch.stack([tokens(i) for i in range(len(CAPTIONS))]),
        )
    print("metric:", (logits.argmax(1) == truth).float().mean().item())
