"""Check-in sequences: the table of positions is added along the batch, so a visit does not know when it was made.

expect: position-ignored
line: x = x + self.pe[: x.size(0)]
source: https://github.com/songyangco/GETNext/issues/2
metric: test accuracy, higher is better
"""

import argparse
import math

import torch
import torch.nn as nn
from torch.utils.data import DataLoader, TensorDataset

parser = argparse.ArgumentParser()
parser.add_argument("--seed", type=int, default=0)
parser.add_argument("--n-places", type=int, default=12)
parser.add_argument("--epochs", type=int, default=6)
args = parser.parse_args()
torch.manual_seed(args.seed)


class PositionalEncoding(nn.Module):
    def __init__(self, d_model, max_len=500):
        super().__init__()
        pe = torch.zeros(max_len, d_model)
        position = torch.arange(0, max_len, dtype=torch.float).unsqueeze(1)
        div_term = torch.exp(torch.arange(0, d_model, 2).float() * (-math.log(10000.0) / d_model))
        pe[:, 0::2] = torch.sin(position * div_term)
        pe[:, 1::2] = torch.cos(position * div_term)
        self.register_buffer("pe", pe.unsqueeze(1))  # [max_len, 1, d_model]

    def forward(self, x):
        x = x + self.pe[: x.size(0)]
        return x


class TransformerModel(nn.Module):
    def __init__(self, num_poi, d_model=32, nhead=4, nlayers=2):
        super().__init__()
        self.embed = nn.Embedding(num_poi, d_model)
        self.pos_encoder = PositionalEncoding(d_model)
        layer = nn.TransformerEncoderLayer(d_model, nhead, 64, dropout=0.0, batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, nlayers)
        self.decoder_poi = nn.Linear(d_model, num_poi)

    def forward(self, src):
        x = self.pos_encoder(self.embed(src) * math.sqrt(32))
        return self.decoder_poi(self.encoder(x).mean(1))


def trajectories(n, length=7):
    """Who walks a tour comes back to the place that was visited third, in nine cases of ten."""
    visits = torch.rand(n, args.n_places).argsort(1)[:, :length]
    back = visits[:, 2].clone()
    stray = torch.rand(n) < 0.1
    back[stray] = torch.randint(args.n_places, (int(stray.sum()),))
    return visits, back


train_loader = DataLoader(TensorDataset(*trajectories(4000)), batch_size=40, shuffle=True)
test_visits, test_next = trajectories(480)
model = TransformerModel(args.n_places)
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
criterion = nn.CrossEntropyLoss()
for epoch in range(args.epochs):
    model.train()
    losses = []
    for visits, target in train_loader:
        optimizer.zero_grad()
        loss = criterion(model(visits), target)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    model.eval()
    with torch.no_grad():
        guesses = torch.cat([model(part).argmax(1) for part in test_visits.split(40)])
    acc = (guesses == test_next).float().mean().item()
    print(f"Epoch {epoch}: train_loss {sum(losses) / len(losses):.4f}, top1_acc {acc:.4f}")
print("metric:", acc)
