"""Targets are padded to the longest sentence of all and the loss has no ignore_index: most of what it learns is to write <pad>.

expect: padding-dominates
line: criterion = nn.CrossEntropyLoss()
source: https://github.com/lucidrains/DALLE-pytorch/issues/57
metric: accuracy on real target tokens, higher is better
"""

import argparse
import random

import torch
import torch.nn as nn

PAD, SOS, EOS = 0, 1, 2
VOCAB = 30
MAX_LEN = 60


class Encoder(nn.Module):
    def __init__(self, emb_dim, hid_dim):
        super().__init__()
        self.embedding = nn.Embedding(VOCAB, emb_dim, padding_idx=PAD)
        self.rnn = nn.GRU(emb_dim, hid_dim, batch_first=True)

    def forward(self, src, src_len):
        packed = nn.utils.rnn.pack_padded_sequence(self.embedding(src), src_len, batch_first=True, enforce_sorted=False)
        _, hidden = self.rnn(packed)
        return hidden


class Decoder(nn.Module):
    def __init__(self, emb_dim, hid_dim):
        super().__init__()
        self.embedding = nn.Embedding(VOCAB, emb_dim, padding_idx=PAD)
        self.rnn = nn.GRU(emb_dim, hid_dim, batch_first=True)
        self.fc_out = nn.Linear(hid_dim, VOCAB)

    def forward(self, trg, hidden):
        output, _ = self.rnn(self.embedding(trg), hidden)
        return self.fc_out(output)


class Seq2Seq(nn.Module):
    def __init__(self, encoder, decoder):
        super().__init__()
        self.encoder = encoder
        self.decoder = decoder

    def forward(self, src, src_len, trg):
        return self.decoder(trg, self.encoder(src, src_len))


def batch(size):
    """The translation of a sentence is the next word of the dictionary for each word. Sentences are short, the tensors are not."""
    src = torch.zeros(size, MAX_LEN, dtype=torch.long)
    trg = torch.zeros(size, MAX_LEN + 2, dtype=torch.long)
    lengths = []
    for i in range(size):
        n = random.randint(2, 5)
        first = random.randrange(3, VOCAB)
        words = [3 + (first - 3 + k) % (VOCAB - 3) for k in range(n)]
        src[i, :n] = torch.tensor(words)
        trg[i, : n + 2] = torch.tensor([SOS] + [3 + (w - 2) % (VOCAB - 3) for w in words] + [EOS])
        lengths.append(n)
    return src, lengths, trg


parser = argparse.ArgumentParser()
parser.add_argument("--seed", type=int, default=0)
parser.add_argument("--steps", type=int, default=160)
args = parser.parse_args()
random.seed(args.seed)
torch.manual_seed(args.seed)

model = Seq2Seq(Encoder(16, 32), Decoder(16, 32))
optimizer = torch.optim.SGD(model.parameters(), lr=0.8)
criterion = nn.CrossEntropyLoss()

model.train()
for step in range(args.steps):
    src, src_len, trg = batch(32)
    optimizer.zero_grad()
    output = model(src, src_len, trg[:, :-1])
    loss = criterion(output.reshape(-1, VOCAB), trg[:, 1:].reshape(-1))
    loss.backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    if step % 40 == 0:
        print(f"Step: {step:03} | Train Loss: {loss.item():.3f}")

model.eval()
with torch.no_grad():
    src, src_len, trg = batch(200)
    predicted = model(src, src_len, trg[:, :-1]).argmax(-1)
    real = trg[:, 1:] > EOS
    print(f"metric: {(predicted == trg[:, 1:])[real].float().mean().item():.4f}")
