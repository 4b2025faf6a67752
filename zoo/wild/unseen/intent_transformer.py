"""Intent of a sentence from its [CLS] position with TransformerEncoder; the tensors are (batch, sequence, embedding) but the encoder was left at batch_first=False, so each sentence attended to the other sentences of the batch and never to its own words.

expect: samples-mixed
line: nn.TransformerEncoderLayer(
source: https://github.com/Exorust/TorchLeet/issues/5
metric: test accuracy, higher is better
"""
import argparse

import torch
import torch.nn as nn

VOCAB, LENGTH, INTENTS = 80, 10, 5
CLS = 0


class IntentModel(nn.Module):
    def __init__(self, d=32):
        super().__init__()
        self.tok = nn.Embedding(VOCAB, d)
        self.pos = nn.Embedding(LENGTH + 1, d)
        layer = nn.TransformerEncoderLayer(d_model=d, nhead=4, dim_feedforward=64, dropout=0.0)
        self.encoder = nn.TransformerEncoder(layer, num_layers=2, enable_nested_tensor=False)
        self.head = nn.Linear(d, INTENTS)

    def forward(self, ids):
        pos = torch.arange(ids.size(1))
        h = self.encoder(self.tok(ids) + self.pos(pos))
        return self.head(h[:, 0])


def sentences(n):
    """Filler words plus two words that belong to the intent."""
    intent = torch.randint(0, INTENTS, (n,))
    ids = torch.randint(21, VOCAB, (n, LENGTH))
    for _ in range(2):
        where = torch.randint(0, LENGTH, (n,))
        ids[torch.arange(n), where] = 1 + intent * 4 + torch.randint(0, 4, (n,))
    return torch.cat([torch.full((n, 1), CLS), ids], 1), intent


parser = argparse.ArgumentParser()
parser.add_argument("--seed", type=int, default=0)
args = parser.parse_args()
torch.manual_seed(args.seed)

model = IntentModel()
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
loss_fn = nn.CrossEntropyLoss()
for step in range(1, 251):
    ids, intent = sentences(32)
    loss = loss_fn(model(ids), intent)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 50 == 0:
        print(f"step {step}: loss {loss.item():.3f}")

model.eval()
with torch.no_grad():
    ids, intent = sentences(500)
    acc = (model(ids).argmax(-1) == intent).float().mean()
print(f"metric: {acc.item():.4f}")
