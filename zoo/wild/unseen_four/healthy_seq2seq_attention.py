"""Seq2seq with attention: writes dates in words as ISO dates; scheduled teacher forcing, padded batches.

expect: nothing
style: encoder/decoder classes, random teacher forcing, ignore_index for padding, greedy decoding at the end
"""
import argparse
import datetime
import random

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence, pad_sequence

PAD, SOS, EOS = 0, 1, 2


def random_pair():
    d = datetime.date(1950, 1, 1) + datetime.timedelta(days=random.randrange(365 * 90))
    fmt = random.choice(["%d %b %Y", "%b %d, %Y"])
    return d.strftime(fmt).lower(), d.isoformat()


class Vocab:
    def __init__(self, chars):
        self.itos = ["<pad>", "<sos>", "<eos>"] + sorted(chars)
        self.stoi = {c: i for i, c in enumerate(self.itos)}

    def encode(self, s):
        return torch.tensor([self.stoi[c] for c in s] + [EOS])


class Encoder(nn.Module):
    def __init__(self, n, emb, hid):
        super().__init__()
        self.embedding = nn.Embedding(n, emb, padding_idx=PAD)
        self.gru = nn.GRU(emb, hid, batch_first=True, bidirectional=True)
        self.fc = nn.Linear(2 * hid, hid)

    def forward(self, src, lengths):
        packed = pack_padded_sequence(self.embedding(src), lengths, batch_first=True, enforce_sorted=False)
        out, h = self.gru(packed)
        out, _ = pad_packed_sequence(out, batch_first=True)
        return out, torch.tanh(self.fc(torch.cat([h[0], h[1]], 1)))


class Decoder(nn.Module):
    def __init__(self, n, emb, hid):
        super().__init__()
        self.embedding = nn.Embedding(n, emb)
        self.query = nn.Linear(hid, 2 * hid, bias=False)
        self.cell = nn.GRUCell(emb + 2 * hid, hid)
        self.out = nn.Linear(3 * hid, n)

    def forward(self, token, h, memory, mask):
        score = torch.bmm(memory, self.query(h).unsqueeze(2)).squeeze(2)
        attn = F.softmax(score.masked_fill(~mask, -1e9), dim=1)
        ctx = torch.bmm(attn.unsqueeze(1), memory).squeeze(1)
        h = self.cell(torch.cat([self.embedding(token), ctx], 1), h)
        return self.out(torch.cat([h, ctx], 1)), h


class Seq2Seq(nn.Module):
    def __init__(self, n_src, n_trg):
        super().__init__()
        self.encoder, self.decoder = Encoder(n_src, 24, 48), Decoder(n_trg, 24, 48)

    def forward(self, src, lengths, trg, teacher_forcing=0.0):
        memory, h = self.encoder(src, lengths)
        mask = (src != PAD)[:, : memory.size(1)]
        token = torch.full((src.size(0),), SOS)
        outputs = []
        for t in range(trg.size(1)):
            logits, h = self.decoder(token, h, memory, mask)
            outputs.append(logits)
            token = trg[:, t] if random.random() < teacher_forcing else logits.argmax(1)
        return torch.stack(outputs, 1)


def batches(pairs, sv, tv, size, shuffle):
    if shuffle:
        random.shuffle(pairs)
    for i in range(0, len(pairs), size):
        src = [sv.encode(a) for a, _ in pairs[i : i + size]]
        trg = [tv.encode(b) for _, b in pairs[i : i + size]]
        yield pad_sequence(src, True, PAD), torch.tensor([len(s) for s in src]), pad_sequence(trg, True, PAD)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    seed = parser.parse_args().seed
    random.seed(seed)
    torch.manual_seed(seed)
    pairs = [random_pair() for _ in range(3700)]
    sv, tv = Vocab(set("".join(a for a, _ in pairs))), Vocab(set("".join(b for _, b in pairs)))
    train, test = pairs[:3300], pairs[3300:]
    model = Seq2Seq(len(sv.itos), len(tv.itos))
    optimizer = torch.optim.Adam(model.parameters(), lr=4e-3)
    scheduler = torch.optim.lr_scheduler.ExponentialLR(optimizer, gamma=0.85)
    criterion = nn.CrossEntropyLoss(ignore_index=PAD)
    epochs = 5
    for epoch in range(epochs):
        model.train()
        total = n = 0
        for src, lengths, trg in batches(train, sv, tv, 56, True):
            optimizer.zero_grad()
            logits = model(src, lengths, trg, teacher_forcing=1.0 - 0.5 * epoch / epochs)
            loss = criterion(logits.flatten(0, 1), trg.flatten())
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            total, n = total + loss.item(), n + 1
        scheduler.step()
        model.eval()
        right = 0
        with torch.no_grad():
            for src, lengths, trg in batches(test, sv, tv, 250, False):
                right += (model(src, lengths, trg).argmax(2) == trg).all(1).sum().item()
        print(f"epoch {epoch + 1} loss {total / n:.4f} exact {right / len(test):.3f}")
    print(f"metric: {right / len(test):.4f}")


if __name__ == "__main__":
    main()
