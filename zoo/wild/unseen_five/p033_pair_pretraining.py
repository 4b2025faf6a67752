"""Masked words and next sentence are trained with one NLLLoss(ignore_index=0): label 0 of the second task, "not next", is never counted.

expect: loss-target-mismatch
line: next_loss = self.criterion(next_sent_output, is_next)
source: https://github.com/codertimo/BERT-pytorch/issues/32
metric: accuracy of next sentence, higher is better
"""

import argparse

import torch
import torch.nn as nn

PAD, MASK, VOCAB = 0, 1, 34


class MiniBERT(nn.Module):
    def __init__(self, d=48, length=12):
        super().__init__()
        self.token = nn.Embedding(VOCAB, d, padding_idx=PAD)
        self.place = nn.Parameter(0.02 * torch.randn(length + 1, d))
        self.cls = nn.Parameter(0.02 * torch.randn(1, 1, d))
        layer = nn.TransformerEncoderLayer(d, 4, 96, dropout=0.0, batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.next_sentence = nn.Linear(d, 2)
        self.mask_lm = nn.Linear(d, VOCAB)
        self.softmax = nn.LogSoftmax(dim=-1)

    def forward(self, x):
        h = torch.cat([self.cls.expand(len(x), -1, -1), self.token(x)], 1) + self.place
        h = self.encoder(h)
        return self.softmax(self.next_sentence(h[:, 0])), self.softmax(self.mask_lm(h[:, 1:]))


class BERTTrainer:
    def __init__(self, bert, lr=2e-3):
        self.model = bert
        self.optim = torch.optim.Adam(self.model.parameters(), lr=lr)
        self.criterion = nn.NLLLoss(ignore_index=0)

    def iteration(self, batch, train=True):
        tokens, labels, is_next = batch
        next_sent_output, mask_lm_output = self.model(tokens)
        next_loss = self.criterion(next_sent_output, is_next)
        mask_loss = self.criterion(mask_lm_output.transpose(1, 2), labels)
        loss = next_loss + mask_loss
        if train:
            self.optim.zero_grad()
            loss.backward()
            self.optim.step()
        correct = next_sent_output.argmax(dim=-1).eq(is_next).float().mean().item()
        return loss.item(), next_loss.item(), correct


def sentences(n):
    """Either sentence speaks of one of two topics; the second is the next one if it keeps to it."""
    topic = torch.randint(0, 2, (n,))
    is_next = torch.randint(0, 2, (n,))
    second = torch.where(is_next == 1, topic, 1 - topic)
    tokens = torch.cat([2 + 16 * t[:, None] + torch.randint(0, 16, (n, 6)) for t in (topic, second)], 1)
    hidden = torch.rand(tokens.shape) < 0.15
    labels = torch.where(hidden, tokens, 0)
    return torch.where(hidden, MASK, tokens), labels, is_next


parser = argparse.ArgumentParser()
parser.add_argument("--seed", type=int, default=0)
args = parser.parse_args()
torch.manual_seed(args.seed)
trainer = BERTTrainer(MiniBERT())
for step in range(300):
    loss, next_loss, correct = trainer.iteration(sentences(48))
    if step % 50 == 0:
        print({"iter": step, "loss": round(loss, 3), "next_loss": round(next_loss, 3), "acc": round(correct, 3)})
trainer.model.eval()
with torch.no_grad():
    print("metric:", trainer.iteration(sentences(600), train=False)[2])
