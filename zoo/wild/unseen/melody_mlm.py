"""Masked modelling of short melodies with a bidirectional encoder; fifteen percent of the notes are hidden and guessed from both sides.

expect: nothing
style: BERT recipe: labels are the input, minus 100 everywhere but at the masked places, attention without a causal mask on purpose, one in ten masked places keeps its note
"""
import argparse

import torch
from torch import nn

NOTES, LENGTH = 12, 12
MASK = NOTES


def melodies(n):
    """Scales that go up or down with a step of one or two notes, wrapping around."""
    start = torch.randint(0, NOTES, (n, 1))
    step = torch.randint(1, 3, (n, 1)) * (torch.randint(0, 2, (n, 1)) * 2 - 1)
    return (start + step * torch.arange(LENGTH)) % NOTES


def mask_tokens(inputs, mlm_probability=0.15):
    labels = inputs.clone()
    masked = torch.rand(inputs.shape) < mlm_probability
    labels[~masked] = -100
    inputs = inputs.clone()
    roll = torch.rand(inputs.shape)
    inputs[masked & (roll < 0.8)] = MASK
    swap = masked & (roll >= 0.8) & (roll < 0.9)
    inputs[swap] = torch.randint(0, NOTES, inputs.shape)[swap]
    return inputs, labels


class MelodyEncoder(nn.Module):
    def __init__(self, d=32):
        super().__init__()
        self.note = nn.Embedding(NOTES + 1, d)
        self.place = nn.Embedding(LENGTH, d)
        layer = nn.TransformerEncoderLayer(d, 4, 64, dropout=0.0, batch_first=True, norm_first=True)
        self.encoder = nn.TransformerEncoder(layer, 2, norm=nn.LayerNorm(d), enable_nested_tensor=False)
        self.out = nn.Linear(d, NOTES)

    def forward(self, x):
        return self.out(self.encoder(self.note(x) + self.place(torch.arange(x.size(1)))))


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--seed", type=int, default=0)
    torch.manual_seed(ap.parse_args().seed)
    model = MelodyEncoder()
    optimizer = torch.optim.AdamW(model.parameters(), lr=4e-3)
    scheduler = torch.optim.lr_scheduler.LinearLR(optimizer, 1.0, 0.1, total_iters=300)
    for step in range(1, 301):
        x, labels = mask_tokens(melodies(32))
        loss = nn.functional.cross_entropy(model(x).transpose(1, 2), labels, ignore_index=-100)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        scheduler.step()
        if step % 60 == 0:
            print(f"step {step} loss {loss.item():.3f}")
    model.eval()
    with torch.no_grad():
        truth = melodies(400)
        where = torch.randint(0, LENGTH, (400,))
        x = truth.clone()
        x[torch.arange(400), where] = MASK
        guess = model(x)[torch.arange(400), where].argmax(1)
        acc = (guess == truth[torch.arange(400), where]).float().mean().item()
    print(f"metric: {acc:.4f}")


if __name__ == "__main__":
    main()
