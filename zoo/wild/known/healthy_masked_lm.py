"""BERT-like pretraining: the encoder sees both sides, four fifths of the labels are ignored.

expect: nothing
style: masked language model with ignore_index=-100 and no causal mask (looks like a leak of the future)
"""

import argparse

import torch
import torch.nn as nn

MASK, VOCAB, LENGTH = 0, 21, 20


class BERT(nn.Module):
    def __init__(self, hidden=40, n_layers=2, heads=2):
        super().__init__()
        self.token = nn.Embedding(VOCAB, hidden)
        self.position = nn.Embedding(LENGTH, hidden)
        layer = nn.TransformerEncoderLayer(hidden, heads, 2 * hidden, dropout=0.0, activation="gelu", batch_first=True, norm_first=True)
        self.encoder = nn.TransformerEncoder(layer, n_layers, enable_nested_tensor=False)
        self.norm = nn.LayerNorm(hidden)
        self.mask_lm = nn.Linear(hidden, VOCAB)

    def forward(self, x):
        h = self.token(x) + self.position(torch.arange(x.size(1)))
        return self.mask_lm(self.norm(self.encoder(h)))


def corpus(n):
    """Words in pairs that agree: the second is the first's partner."""
    first = torch.randint(1, 11, (n, LENGTH // 2))
    return torch.stack([first, first + 10], 2).view(n, LENGTH)


def mask_tokens(inputs, probability=0.2):
    labels = inputs.clone()
    chosen = torch.rand(inputs.shape) < probability
    labels[~chosen] = -100
    inputs = inputs.clone()
    inputs[chosen] = MASK
    return inputs, labels


class BERTTrainer:
    def __init__(self, bert):
        self.bert = bert
        self.optim = torch.optim.AdamW(bert.parameters(), lr=3e-3, betas=(0.9, 0.98), weight_decay=0.01)
        warm, total = 30, 260
        self.schedule = torch.optim.lr_scheduler.LambdaLR(self.optim, lambda s: min((s + 1) / warm, max(0.0, (total - s) / (total - warm))))
        self.criterion = nn.CrossEntropyLoss(ignore_index=-100)

    def iteration(self, steps):
        self.bert.train()
        for i in range(steps):
            x, y = mask_tokens(corpus(32))
            loss = self.criterion(self.bert(x).transpose(1, 2), y)
            self.optim.zero_grad()
            loss.backward()
            self.optim.step()
            self.schedule.step()
            if i % 50 == 0:
                print({"iter": i, "loss": loss.item()})

    def evaluate(self):
        self.bert.eval()
        x, y = mask_tokens(corpus(300), 0.1)
        # only where the partner is visible
        known = (y != -100) & (x.view(-1, LENGTH // 2, 2).flip(2).reshape(x.shape) != MASK)
        with torch.no_grad():
            return (self.bert(x).argmax(-1) == y)[known].float().mean().item()


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    torch.manual_seed(parser.parse_args().seed)
    trainer = BERTTrainer(BERT())
    trainer.iteration(250)
    print("metric:", trainer.evaluate())
