"""The slice of the positional encoding lacks its colon: every token gets the encoding of one and the same position.

expect: position-ignored
line: x + self.pe[:, x.shape[1], :]
source: https://github.com/DiffPoseTalk/DiffPoseTalk/issues/20
metric: test accuracy, higher is better
"""

import argparse
import math

import torch
import torch.nn as nn
import torch.nn.functional as F

parser = argparse.ArgumentParser()
parser.add_argument("--seed", type=int, default=0)
parser.add_argument("--steps", type=int, default=600)
opt = parser.parse_args()
torch.manual_seed(opt.seed)

VOCAB, LENGTH, CLASSES = 8, 10, 8


class PositionalEncoding(nn.Module):
    def __init__(self, d_model, max_len=200, dropout=0.0):
        super().__init__()
        self.dropout = nn.Dropout(dropout)
        position = torch.arange(max_len).unsqueeze(1)
        div = torch.exp(torch.arange(0, d_model, 2) * (-math.log(10000.0) / d_model))
        pe = torch.zeros(1, max_len, d_model)
        pe[0, :, 0::2] = torch.sin(position * div)
        pe[0, :, 1::2] = torch.cos(position * div)
        self.register_buffer("pe", pe)

    def forward(self, x):
        x = x + self.pe[:, x.shape[1], :]
        return self.dropout(x)


class EventClassifier(nn.Module):
    def __init__(self, dim=32):
        super().__init__()
        self.embed = nn.Embedding(VOCAB, dim)
        self.position = PositionalEncoding(dim)
        layer = nn.TransformerEncoderLayer(dim, nhead=4, dim_feedforward=64, dropout=0.0, batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, num_layers=2)
        self.classify = nn.Linear(dim, CLASSES)

    def forward(self, codes):
        hidden = self.encoder(self.position(self.embed(codes)))
        return self.classify(hidden.mean(dim=1))


def sample(n):
    # a machine log: the fault is the code that stood at the very beginning
    codes = torch.randint(0, VOCAB, (n, LENGTH))
    return codes, codes[:, 0].clone()


model = EventClassifier()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
x_all, y_all = sample(6000)
x_test, y_test = sample(1000)

model.train()
for step in range(opt.steps):
    idx = torch.randint(0, len(x_all), (64,))
    loss = F.cross_entropy(model(x_all[idx]), y_all[idx])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 100 == 0:
        print(step, round(loss.item(), 4))

model.eval()
with torch.no_grad():
    accuracy = (model(x_test).argmax(-1) == y_test).float().mean().item()
print("metric:", accuracy)
