"""lr_scheduler.step() is called after every micro-batch group, but gamma=0.85 is meant per epoch.

expect: scheduler-collapse
line: lr_scheduler.step()
source: https://github.com/meta-llama/llama-cookbook/issues/27
metric: evaluation perplexity, lower is better
"""
import argparse

import numpy as np
import torch
from torch import nn

parser = argparse.ArgumentParser()
parser.add_argument("--seed", type=int, default=0)
parser.add_argument("--num_epochs", type=int, default=5)
parser.add_argument("--gradient_accumulation_steps", type=int, default=2)
parser.add_argument("--lr", type=float, default=3e-3)
parser.add_argument("--gamma", type=float, default=0.85)
train_config = parser.parse_args()


class Llamita(nn.Module):
    def __init__(self, vocab=16, dim=32, context=16):
        super().__init__()
        self.tokens, self.places = nn.Embedding(vocab, dim), nn.Embedding(context, dim)
        layer = nn.TransformerEncoderLayer(dim, 4, 64, dropout=0.0, batch_first=True, norm_first=True)
        self.layers = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.norm, self.lm_head = nn.LayerNorm(dim), nn.Linear(dim, vocab)
        self.register_buffer("causal", torch.triu(torch.ones(context, context, dtype=torch.bool), 1))

    def forward(self, ids, labels):
        n = ids.shape[1]
        h = self.tokens(ids) + self.places(torch.arange(n))
        logits = self.lm_head(self.norm(self.layers(h, mask=self.causal[:n, :n])))
        return nn.functional.cross_entropy(logits.flatten(0, 1), labels.flatten())


def corpus(rng, n, table):
    out = np.zeros((n, 17), int)
    out[:, :2] = rng.integers(0, 16, (n, 2))
    for t in range(2, 17):
        out[:, t] = np.where(rng.random(n) < 0.9, table[out[:, t - 2], out[:, t - 1]], rng.integers(0, 16, n))
    return torch.tensor(out)


def train(model, batches, optimizer, lr_scheduler, config):
    k = config.gradient_accumulation_steps
    for epoch in range(config.num_epochs):
        model.train()
        total_loss = 0.0
        for step, i in enumerate(torch.randperm(len(batches))):
            batch = batches[i]
            loss = model(batch[:, :-1], batch[:, 1:]) / k
            loss.backward()
            total_loss += loss.item() * k
            if (step + 1) % k == 0:
                optimizer.step()
                optimizer.zero_grad()
                lr_scheduler.step()
        print(f"epoch {epoch + 1}: train loss {total_loss / len(batches):.4f}")


torch.manual_seed(train_config.seed)
rng = np.random.default_rng(train_config.seed)
table = rng.integers(0, 16, (16, 16))
train_data = corpus(rng, 4800, table).view(-1, 24, 17)
eval_data = corpus(rng, 500, table)
model = Llamita()
optimizer = torch.optim.AdamW(model.parameters(), lr=train_config.lr, weight_decay=0.0)
scheduler = torch.optim.lr_scheduler.StepLR(optimizer, step_size=1, gamma=train_config.gamma)
train(model, train_data, optimizer, scheduler, train_config)

model.eval()
with torch.no_grad():
    eval_loss = model(eval_data[:, :-1], eval_data[:, 1:])
print("metric:", eval_loss.exp().item())
