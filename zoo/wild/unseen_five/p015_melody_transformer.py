"""nn.Transformer maps one series to another; the decoder is always given zeros, so it says the same thing at every step.

expect: input-collapsed
or: input-ignored
line: pred = model(x, torch.zeros_like(y))
source: https://openillumi.com/en/en-pytorch-transformer-multidim-output-same-fix
metric: mean squared error of teacher-forced prediction, lower is better
"""

import argparse

import torch
import torch.nn as nn


class SeqModel(nn.Module):
    def __init__(self, features=4, d_model=32):
        super().__init__()
        self.embed = nn.Linear(features, d_model)
        self.transformer = nn.Transformer(d_model, nhead=2, num_encoder_layers=1, num_decoder_layers=1,
                                          dim_feedforward=64, dropout=0.0, batch_first=True)
        self.out = nn.Linear(d_model, features)

    def forward(self, src, tgt):
        mask = nn.Transformer.generate_square_subsequent_mask(tgt.shape[1])
        hidden = self.transformer(self.embed(src), self.embed(tgt), tgt_mask=mask)
        return self.out(hidden)


def batch(n, length=16):
    """Rotating vectors: the target goes on where the source has stopped."""
    speed = 0.2 + 0.6 * torch.rand(n, 1, 2)
    phase = 6.28 * torch.rand(n, 1, 2)
    t = torch.arange(2 * length + 1.0)[None, :, None]
    angle = speed * t + phase
    wave = torch.cat([angle.sin(), angle.cos()], -1)
    return wave[:, :length], wave[:, length - 1 : 2 * length - 1], wave[:, length : 2 * length]


parser = argparse.ArgumentParser()
parser.add_argument("--seed", type=int, default=0)
args = parser.parse_args()
torch.manual_seed(args.seed)

model = SeqModel()
criterion = nn.MSELoss()
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
for step in range(400):
    x, previous, y = batch(32)
    pred = model(x, torch.zeros_like(y))
    loss = criterion(pred, y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 50 == 0:
        print(f"step {step}: {loss.item():.4f}")

model.eval()
with torch.no_grad():
    x, previous, y = batch(256)
    pred = model(x, torch.zeros_like(y))
    print("metric:", criterion(pred, y).item())
