"""Character language model: stateful LSTM, truncated back-propagation, hidden state carried from chunk to chunk.

expect: nothing
style: the word_language_model manner: batchify, get_batch, repackage_hidden; batches follow the text, not shuffled on purpose
"""
import argparse
import math
import random

import torch
import torch.nn as nn

parser = argparse.ArgumentParser()
parser.add_argument("--seed", type=int, default=0)
parser.add_argument("--bptt", type=int, default=32)
parser.add_argument("--clip", type=float, default=1.0)
args = parser.parse_args()
torch.manual_seed(args.seed)
random.seed(args.seed)

nouns = "cat dog bird farmer child teacher river stone garden window".split()
verbs = "sees follows likes finds paints carries".split()
adjectives = "small old green quiet happy".split()


def sentence():
    a, b = random.choice(nouns), random.choice(nouns)
    adj = random.choice(adjectives) + " " if random.random() < 0.5 else ""
    return f"the {adj}{a} {random.choice(verbs)} the {b} . "


text = "".join(sentence() for _ in range(2600))
vocab = sorted(set(text))
stoi = {c: i for i, c in enumerate(vocab)}
corpus = torch.tensor([stoi[c] for c in text])
split = int(0.9 * len(corpus))


def batchify(data, bsz):
    nbatch = data.size(0) // bsz
    return data[: nbatch * bsz].view(bsz, -1).t().contiguous()


train_data, val_data = batchify(corpus[:split], 20), batchify(corpus[split:], 10)


class RNNModel(nn.Module):
    def __init__(self, ntoken, ninp=32, nhid=96, dropout=0.1):
        super().__init__()
        self.drop = nn.Dropout(dropout)
        self.encoder = nn.Embedding(ntoken, ninp)
        self.rnn = nn.LSTM(ninp, nhid)
        self.decoder = nn.Linear(nhid, ntoken)
        self.nhid = nhid
        nn.init.uniform_(self.encoder.weight, -0.1, 0.1)
        nn.init.zeros_(self.decoder.bias)
        nn.init.uniform_(self.decoder.weight, -0.1, 0.1)

    def forward(self, x, hidden):
        output, hidden = self.rnn(self.drop(self.encoder(x)), hidden)
        return self.decoder(self.drop(output)).flatten(0, 1), hidden

    def init_hidden(self, bsz):
        weight = next(self.parameters())
        return weight.new_zeros(1, bsz, self.nhid), weight.new_zeros(1, bsz, self.nhid)


def repackage_hidden(h):
    return h.detach() if isinstance(h, torch.Tensor) else tuple(repackage_hidden(v) for v in h)


def get_batch(source, i):
    seq_len = min(args.bptt, len(source) - 1 - i)
    return source[i : i + seq_len], source[i + 1 : i + 1 + seq_len].reshape(-1)


model = RNNModel(len(vocab))
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.Adam(model.parameters(), lr=4e-3)


def evaluate(source):
    model.eval()
    total = 0.0
    hidden = model.init_hidden(source.size(1))
    with torch.no_grad():
        for i in range(0, source.size(0) - 1, args.bptt):
            data, targets = get_batch(source, i)
            output, hidden = model(data, hidden)
            total += len(data) * criterion(output, targets).item()
    return total / (len(source) - 1)


for epoch in range(1, 4):
    model.train()
    total_loss, count = 0.0, 0
    hidden = model.init_hidden(train_data.size(1))
    for i in range(0, train_data.size(0) - 1, args.bptt):
        data, targets = get_batch(train_data, i)
        hidden = repackage_hidden(hidden)
        model.zero_grad()
        output, hidden = model(data, hidden)
        loss = criterion(output, targets)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), args.clip)
        optimizer.step()
        total_loss += loss.item()
        count += 1
    val_loss = evaluate(val_data)
    print(f"| epoch {epoch} | steps {count} | train {total_loss / count:.3f} | valid ppl {math.exp(val_loss):.3f}")
print(f"metric: {math.exp(evaluate(val_data)):.4f}")
