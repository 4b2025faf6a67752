"""A first language model from scratch calls the output of softmax "logits" and hands it to F.cross_entropy.

expect: softmax-before-cross-entropy
or: output-misfits-loss
line: logits = F.softmax(a, dim=-1)
source: https://github.com/bkitano/llama-from-scratch/issues/5
metric: perplexity of the next character, lower is better
"""

import argparse

import torch
from torch import nn
from torch.nn import functional as F

parser = argparse.ArgumentParser()
parser.add_argument("--seed", type=int, default=0)
torch.manual_seed(parser.parse_args().seed)

words = "the sun rises over the quiet hills and the river sings a slow song of stones and moss while birds wake in the trees to call the day".split()
pick = torch.randint(len(words), (6000,))
text = " ".join(words[int(i)] for i in pick)
vocab = sorted(set(text))
stoi = {ch: i for i, ch in enumerate(vocab)}
dataset = torch.tensor([stoi[c] for c in text])

MASTER_CONFIG = {"vocab_size": len(vocab), "d_model": 64, "batch_size": 32, "context_window": 16, "epochs": 1200, "log_interval": 200}


def get_batches(data, split, batch_size, context_window):
    train, val = data[: int(0.8 * len(data))], data[int(0.8 * len(data)) :]
    part = train if split == "train" else val
    ix = torch.randint(0, part.size(0) - context_window - 1, (batch_size,))
    x = torch.stack([part[i : i + context_window] for i in ix])
    y = torch.stack([part[i + 1 : i + context_window + 1] for i in ix])
    return x, y


class SimpleModel(nn.Module):
    def __init__(self, config=MASTER_CONFIG):
        super().__init__()
        self.config = config
        self.embedding = nn.Embedding(config["vocab_size"], config["d_model"])
        self.linear = nn.Sequential(
            nn.Linear(config["d_model"], config["d_model"]),
            nn.ReLU(),
            nn.Linear(config["d_model"], config["vocab_size"]),
        )

    def forward(self, idx, targets=None):
        x = self.embedding(idx)
        a = self.linear(x)
        logits = F.softmax(a, dim=-1)
        if targets is not None:
            loss = F.cross_entropy(logits.view(-1, self.config["vocab_size"]), targets.view(-1))
            return logits, loss
        return logits


@torch.no_grad()
def evaluate_loss(model, config=MASTER_CONFIG):
    model.eval()
    losses = [model(*get_batches(dataset, "val", config["batch_size"], config["context_window"]))[1].item() for _ in range(10)]
    model.train()
    return sum(losses) / len(losses)


model = SimpleModel()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
for epoch in range(MASTER_CONFIG["epochs"]):
    optimizer.zero_grad()
    xs, ys = get_batches(dataset, "train", MASTER_CONFIG["batch_size"], MASTER_CONFIG["context_window"])
    logits, loss = model(xs, targets=ys)
    loss.backward()
    optimizer.step()
    if epoch % MASTER_CONFIG["log_interval"] == 0:
        print("epoch", epoch, "val loss", evaluate_loss(model))
print("validation loss", evaluate_loss(model))
print("metric:", 2.718281828 ** evaluate_loss(model))
