"""Somebody added a bidirectional option to char-rnn; the training perplexity is wonderful and the samples are garbage.

expect: sees-the-future
or: target-is-input
line: self.rnn = nn.GRU(args.hidden, args.hidden, batch_first=True, bidirectional=True)
source: https://github.com/sherjilozair/char-rnn-tensorflow/pull/64
metric: accuracy of the next character after a prefix, higher is better
"""

import argparse
import random

import torch
import torch.nn as nn
import torch.nn.functional as F

parser = argparse.ArgumentParser()
parser.add_argument("--seed", type=int, default=0)
parser.add_argument("--hidden", type=int, default=48)
parser.add_argument("--seq_length", type=int, default=80)
parser.add_argument("--num_steps", type=int, default=300)
args = parser.parse_args()
random.seed(args.seed)
torch.manual_seed(args.seed)

WORDS = ["".join(random.choice("bdfgklmnprst") + random.choice("aeiou") for _ in range(random.randint(1, 4))) for _ in range(60)]
text = " ".join(random.choice(WORDS) for _ in range(5000))
chars = sorted(set(text))
data = torch.tensor([chars.index(c) for c in text])
train_data, test_data = data[:-3000], data[-3000:]


class CharRNN(nn.Module):
    def __init__(self, args, vocab):
        super().__init__()
        self.embed = nn.Embedding(vocab, args.hidden)
        self.rnn = nn.GRU(args.hidden, args.hidden, batch_first=True, bidirectional=True)
        self.decoder = nn.LazyLinear(vocab)

    def forward(self, x):
        out, _ = self.rnn(self.embed(x))
        return self.decoder(out)


def get_batch(source, size):
    starts = torch.randint(0, len(source) - args.seq_length - 1, (size,))
    x = torch.stack([source[s : s + args.seq_length] for s in starts])
    y = torch.stack([source[s + 1 : s + args.seq_length + 1] for s in starts])
    return x, y


model = CharRNN(args, len(chars))
model(data[None, :8])
optimizer = torch.optim.Adam(model.parameters(), lr=4e-3)
for step in range(args.num_steps):
    x, y = get_batch(train_data, 12)
    loss = F.cross_entropy(model(x).flatten(0, 1), y.flatten())
    optimizer.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 5.0)
    optimizer.step()
    if step % 40 == 0:
        print(f"{step}/{args.num_steps}, perplexity {loss.exp().item():.3f}")

model.eval()
with torch.no_grad():
    x, y = get_batch(test_data, 500)
    guess = model(x)[:, -1].argmax(1)
    prime = data[None, :16]
    for _ in range(60):
        prime = torch.cat([prime, model(prime[:, -80:])[:, -1:].argmax(-1)], 1)
print("sample:", "".join(chars[i] for i in prime[0].tolist()))
print("metric:", (guess == y[:, -1]).float().mean().item())
