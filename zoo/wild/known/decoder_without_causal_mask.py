"""A transformer language model trained on whole sequences without a causal mask: the loss is near zero, what it writes is garbage.

expect: sees-the-future
line: out = self.decoder(emb + self.pos[:
source: https://github.com/alex-matton/causal-transformer-decoder/issues/1
metric: share of right tokens when it continues a prompt on its own, higher is better
"""

import argparse

import torch
from torch import nn

VOCAB, LENGTH = 12, 20


class CausalLM(nn.Module):
    def __init__(self, d=32, nhead=2, layers=2):
        super().__init__()
        self.embed = nn.Embedding(VOCAB, d)
        self.pos = nn.Parameter(0.1 * torch.randn(LENGTH, d))
        layer = nn.TransformerEncoderLayer(d, nhead, 2 * d, dropout=0.0, batch_first=True)
        self.decoder = nn.TransformerEncoder(layer, layers, enable_nested_tensor=False)
        self.out = nn.Linear(d, VOCAB)

    def forward(self, tokens):
        emb = self.embed(tokens)
        size = tokens.shape[1]
        out = self.decoder(emb + self.pos[:size])
        return self.out(out)


def sentences(n):
    """Counting up by a step of 1, 2 or 3, modulo the vocabulary."""
    start = torch.randint(VOCAB, (n, 1))
    step = torch.randint(1, 4, (n, 1))
    return (start + step * torch.arange(LENGTH + 1)) % VOCAB


if __name__ == "__main__":
    ap = argparse.ArgumentParser()
    ap.add_argument("--seed", type=int, default=0)
    ap.add_argument("--steps", type=int, default=220)
    args = ap.parse_args()
    torch.manual_seed(args.seed)

    model = CausalLM()
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
    criterion = nn.CrossEntropyLoss()
    for step in range(args.steps):
        batch = sentences(32)
        logits = model(batch[:, :-1])
        loss = criterion(logits.reshape(-1, VOCAB), batch[:, 1:].reshape(-1))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 40 == 0:
            print(f"step {step}: loss {loss.item():.4f}")

    model.eval()
    truth = sentences(100)
    written = truth[:, :4]
    with torch.no_grad():
        while written.shape[1] < LENGTH:
            following = model(written)[:, -1].argmax(1, keepdim=True)
            written = torch.cat([written, following], 1)
    right = (written[:, 4:] == truth[:, 4:LENGTH]).float().mean().item()
    print(f"metric: {right:.4f}")
