"""A little BERT with two tasks, written out by hand, trained by Adam with a rate of 0.01: the loss jumps up and down and stays high.

expect: learning-rate-too-high
or: diverged, oscillating-loss, not-learning
line: optimizer = optim.Adam(model.parameters(), lr=0.01)
source: https://github.com/graykode/nlp-tutorial/issues/77
metric: accuracy on masked words, higher is better
"""

import argparse
import math
from random import Random

import torch
import torch.nn as nn
import torch.optim as optim

maxlen, n_layers, n_heads, d_model, d_ff, d_k = 13, 4, 4, 64, 128, 16
PAD, CLS, SEP, MASK = 0, 1, 2, 3
subjects, verbs, objects = list(range(4, 10)), list(range(10, 16)), list(range(16, 22))
vocab_size = 22


def sentence(rng, i):
    """Subject, verb and object that go with each other."""
    j = rng.randrange(2)
    return [subjects[i], verbs[(i + j) % 6], objects[(i + 2 * j) % 6], verbs[(i + 3) % 6], objects[(i + j) % 6]]


def make_batch(rng, size=32):
    ids, labels, is_next = [], [], []
    for _ in range(size):
        i = rng.randrange(6)
        follow = rng.random() < 0.5
        k = (i + 1) % 6 if follow else rng.choice([n for n in range(6) if n != (i + 1) % 6])
        row = [CLS, *sentence(rng, i), SEP, *sentence(rng, k), SEP]
        label = [-100] * maxlen
        for pos in rng.sample([p for p, t in enumerate(row) if t > MASK], 2):
            label[pos] = row[pos]
            row[pos] = MASK
        ids.append(row), labels.append(label), is_next.append(int(follow))
    return torch.tensor(ids), torch.tensor(labels), torch.tensor(is_next)


class Embedding(nn.Module):
    def __init__(self):
        super().__init__()
        self.tok_embed, self.pos_embed, self.seg_embed = nn.Embedding(vocab_size, d_model), nn.Embedding(maxlen, d_model), nn.Embedding(2, d_model)
        self.norm = nn.LayerNorm(d_model)

    def forward(self, x):
        pos = torch.arange(maxlen).expand_as(x)
        return self.norm(self.tok_embed(x) + self.pos_embed(pos) + self.seg_embed((pos > 6).long()))


class EncoderLayer(nn.Module):
    def __init__(self):
        super().__init__()
        self.W_QKV, self.linear = nn.Linear(d_model, 3 * d_model), nn.Linear(d_model, d_model)
        self.fc1, self.fc2 = nn.Linear(d_model, d_ff), nn.Linear(d_ff, d_model)
        self.norm1, self.norm2 = nn.LayerNorm(d_model), nn.LayerNorm(d_model)

    def forward(self, x):
        q, k, v = (t.view(*t.shape[:2], n_heads, d_k).transpose(1, 2) for t in self.W_QKV(x).chunk(3, -1))
        attn = torch.softmax(q @ k.transpose(-1, -2) / math.sqrt(d_k), -1)
        x = self.norm1(x + self.linear((attn @ v).transpose(1, 2).flatten(2)))
        return self.norm2(x + self.fc2(nn.functional.gelu(self.fc1(x))))


class BERT(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = Embedding()
        self.layers = nn.ModuleList([EncoderLayer() for _ in range(n_layers)])
        self.fc, self.classifier = nn.Linear(d_model, d_model), nn.Linear(d_model, 2)
        self.decoder = nn.Linear(d_model, vocab_size)

    def forward(self, input_ids):
        output = self.embedding(input_ids)
        for layer in self.layers:
            output = layer(output)
        return self.decoder(output), self.classifier(torch.tanh(self.fc(output[:, 0])))


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    torch.manual_seed(args.seed)
    rng = Random(args.seed)
    model = BERT()
    criterion = nn.CrossEntropyLoss()
    optimizer = optim.Adam(model.parameters(), lr=0.01)
    for epoch in range(500):
        input_ids, masked, is_next = make_batch(rng)
        optimizer.zero_grad()
        logits_lm, logits_clsf = model(input_ids)
        loss = criterion(logits_lm.transpose(1, 2), masked) + criterion(logits_clsf, is_next)
        loss.backward()
        optimizer.step()
        if (epoch + 1) % 50 == 0:
            print("Epoch:", "%04d" % (epoch + 1), "cost =", "{:.6f}".format(loss.item()))
    with torch.no_grad():
        input_ids, masked, _ = make_batch(rng, 500)
        hidden = masked != -100
        print("metric:", (model(input_ids)[0].argmax(-1)[hidden] == masked[hidden]).float().mean().item())
