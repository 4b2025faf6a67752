"""A bidirectional LSTM with a linear-chain CRF on top tags BIO spans in sentences of different lengths.

expect: nothing
style: the official tutorial's idea in batched form: forward algorithm in log space, packed sequences, Viterbi at test time
"""
import random
import sys

import torch
import torch.nn as nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence, pad_sequence

SEED = int(sys.argv[sys.argv.index("--seed") + 1]) if "--seed" in sys.argv else 0
TAGS = ["O", "B", "I"]
FIRST = [f"first{i}" for i in range(15)]
LAST = [f"last{i}" for i in range(15)]
TITLES = ["mr", "dr", "captain"]
OTHER = [f"word{i}" for i in range(60)] + FIRST[:5]          # some names are also ordinary words
VOCAB = {w: i + 1 for i, w in enumerate(dict.fromkeys(FIRST + LAST + TITLES + OTHER))}


def sentence(rng):
    words, tags = [], []
    for _ in range(rng.randint(3, 7)):
        if rng.random() < 0.35:
            words.append(rng.choice(TITLES)); tags.append(0)
            words.append(rng.choice(FIRST)); tags.append(1)
            for _ in range(rng.randint(0, 2)):
                words.append(rng.choice(LAST)); tags.append(2)
        else:
            words.append(rng.choice(OTHER)); tags.append(0)
    return torch.tensor([VOCAB[w] for w in words]), torch.tensor(tags)


class CRF(nn.Module):
    def __init__(self, k):
        super().__init__()
        self.start, self.end = nn.Parameter(torch.zeros(k)), nn.Parameter(torch.zeros(k))
        self.trans = nn.Parameter(torch.zeros(k, k))

    def log_partition(self, e, mask):
        alpha = self.start + e[:, 0]
        for t in range(1, e.size(1)):
            nxt = torch.logsumexp(alpha[:, :, None] + self.trans[None] + e[:, t, None, :], 1)
            alpha = torch.where(mask[:, t, None], nxt, alpha)
        return torch.logsumexp(alpha + self.end, 1)

    def score(self, e, tags, mask):
        b = torch.arange(len(e))
        s = self.start[tags[:, 0]] + e[b, 0, tags[:, 0]]
        for t in range(1, e.size(1)):
            s = s + (self.trans[tags[:, t - 1], tags[:, t]] + e[b, t, tags[:, t]]) * mask[:, t]
        return s + self.end[tags[b, mask.sum(1) - 1]]

    def nll(self, e, tags, mask):
        return (self.log_partition(e, mask) - self.score(e, tags, mask)).mean()

    def viterbi(self, e):
        score, back = self.start + e[0], []
        for t in range(1, len(e)):
            best, idx = (score[:, None] + self.trans).max(0)
            score = best + e[t]
            back.append(idx)
        path = [int((score + self.end).argmax())]
        for idx in reversed(back):
            path.append(int(idx[path[-1]]))
        return path[::-1]


class BiLSTM_CRF(nn.Module):
    def __init__(self, vocab, emb=24, hidden=24):
        super().__init__()
        self.emb = nn.Embedding(vocab + 1, emb, padding_idx=0)
        self.lstm = nn.LSTM(emb, hidden, batch_first=True, bidirectional=True)
        self.hidden2tag = nn.Linear(2 * hidden, len(TAGS))
        self.crf = CRF(len(TAGS))

    def emissions(self, x, lengths):
        packed = pack_padded_sequence(self.emb(x), lengths, batch_first=True, enforce_sorted=False)
        out, _ = pad_packed_sequence(self.lstm(packed)[0], batch_first=True)
        return self.hidden2tag(out)


def collate(items):
    xs, ys = zip(*items)
    lengths = torch.tensor([len(x) for x in xs])
    x, y = pad_sequence(xs, batch_first=True), pad_sequence(ys, batch_first=True)
    return x, y, lengths, torch.arange(x.size(1))[None] < lengths[:, None]


if __name__ == "__main__":
    torch.manual_seed(SEED)
    rng = random.Random(SEED)
    train = [sentence(rng) for _ in range(800)]
    test = [sentence(rng) for _ in range(200)]
    model = BiLSTM_CRF(len(VOCAB))
    optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
    for epoch in range(5):
        model.train()
        rng.shuffle(train)
        total = 0.0
        for i in range(0, len(train), 32):
            x, y, lengths, mask = collate(train[i:i + 32])
            loss = model.crf.nll(model.emissions(x, lengths), y, mask)
            model.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item() * len(x)
        print(f"epoch {epoch} nll per sentence {total / len(train):.4f}")
    model.eval()
    tp = fp = fn = 0
    with torch.no_grad():
        for x, y in test:
            path = model.crf.viterbi(model.emissions(x[None], torch.tensor([len(x)]))[0])
            for p, g in zip(path, y.tolist()):
                tp += p == g and g > 0
                fp += p > 0 and p != g
                fn += g > 0 and p != g
    print(f"metric: {2 * tp / (2 * tp + fp + fn):.4f}")
