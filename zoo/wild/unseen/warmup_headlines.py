"""Headline topic classifier in Lightning style (own loop) with linear warm-up over 100 steps; the scheduler was stepped once an epoch, so ten epochs later the rate was still in the first tenth of the warm-up.

expect: learning-rate-too-low
or: scheduler-collapse
line: self.scheduler.step()
source: https://github.com/Lightning-AI/pytorch-lightning/issues/5631
metric: test accuracy, higher is better
"""
import argparse

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.optim.lr_scheduler import LambdaLR


class TopicModule(nn.Module):
    def __init__(self, vocab=300, dim=32, topics=8, warmup_steps=100, max_steps=400):
        super().__init__()
        self.emb = nn.EmbeddingBag(vocab, dim, mode="mean")
        self.ff = nn.Sequential(nn.Linear(dim, 64), nn.ReLU(), nn.Linear(64, topics))
        self.warmup_steps, self.max_steps = warmup_steps, max_steps

    def forward(self, tokens):
        return self.ff(self.emb(tokens))

    def training_step(self, batch):
        tokens, topic = batch
        return F.cross_entropy(self(tokens), topic)

    def configure_optimizers(self):
        optimizer = torch.optim.AdamW(self.parameters(), lr=5e-3)

        def factor(step):
            if step < self.warmup_steps:
                return step / self.warmup_steps
            return max(0.0, (self.max_steps - step) / (self.max_steps - self.warmup_steps))

        return optimizer, LambdaLR(optimizer, factor)


class Loop:
    """A few lines of what the framework does, to step through in a debugger."""

    def __init__(self, max_epochs):
        self.max_epochs = max_epochs

    def fit(self, module, batches):
        self.optimizer, self.scheduler = module.configure_optimizers()
        for epoch in range(self.max_epochs):
            for batch in batches():
                loss = module.training_step(batch)
                self.optimizer.zero_grad()
                loss.backward()
                self.optimizer.step()
            self.scheduler.step()
            print("epoch", epoch, "loss", round(loss.item(), 3))


def headlines(n, generator):
    topic = torch.randint(0, 8, (n,), generator=generator)
    words = torch.randint(0, 300, (n, 9), generator=generator)
    on_topic = torch.rand(n, 9, generator=generator) < 0.35
    own = topic[:, None] * 30 + torch.randint(0, 30, (n, 9), generator=generator)
    return torch.where(on_topic, own, words), topic


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    seed = parser.parse_args().seed
    torch.manual_seed(seed)
    g = torch.Generator().manual_seed(seed)
    tokens, topic = headlines(2560, g)
    test_tokens, test_topic = headlines(800, g)

    def batches():
        for idx in torch.randperm(len(tokens)).split(64):
            yield tokens[idx], topic[idx]

    module = TopicModule()
    Loop(max_epochs=10).fit(module, batches)
    with torch.no_grad():
        acc = (module(test_tokens).argmax(1) == test_topic).float().mean().item()
    print(f"metric: {acc:.4f}")


if __name__ == "__main__":
    main()
