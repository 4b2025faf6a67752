"""Sequence to sequence with attention: sort a short list of digits of varying length.

expect: nothing
style: packed encoder, teacher forcing half of the time, padding ignored in the loss and masked in the attention, greedy decoding in the test
"""
import argparse
import random

import torch
import torch.nn as nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence, pad_sequence

PAD, BOS, EOS = 10, 11, 12
VOCAB = 13


class Encoder(nn.Module):
    def __init__(self, d=24, h=48):
        super().__init__()
        self.emb = nn.Embedding(VOCAB, d, padding_idx=PAD)
        self.rnn = nn.GRU(d, h // 2, batch_first=True, bidirectional=True)

    def forward(self, src, lengths):
        packed = pack_padded_sequence(self.emb(src), lengths, batch_first=True, enforce_sorted=False)
        out, h = self.rnn(packed)
        out, _ = pad_packed_sequence(out, batch_first=True)
        return out, torch.cat([h[0], h[1]], 1)


class Decoder(nn.Module):
    def __init__(self, d=24, h=48):
        super().__init__()
        self.emb = nn.Embedding(VOCAB, d)
        self.cell = nn.GRUCell(d + h, h)
        self.query = nn.Linear(h, h, bias=False)
        self.out = nn.Linear(2 * h, VOCAB)

    def forward(self, token, h, memory, mask):
        score = torch.einsum("bh,bth->bt", self.query(h), memory).masked_fill(~mask, float("-inf"))
        context = torch.einsum("bt,bth->bh", score.softmax(1), memory)
        h = self.cell(torch.cat([self.emb(token), context], 1), h)
        return self.out(torch.cat([h, context], 1)), h


def batch(n):
    lists = [torch.randint(0, 10, (random.randint(2, 4),)) for _ in range(n)]
    src = pad_sequence(lists, batch_first=True, padding_value=PAD)
    tgt = [torch.cat([x.sort().values, torch.tensor([EOS])]) for x in lists]
    tgt = pad_sequence(tgt, batch_first=True, padding_value=PAD)
    return src, torch.tensor([len(x) for x in lists]), tgt


def run(encoder, decoder, src, lengths, tgt, teacher):
    memory, h = encoder(src, lengths)
    mask = src != PAD
    token = torch.full((len(src),), BOS)
    logits = []
    for t in range(tgt.size(1)):
        out, h = decoder(token, h, memory, mask)
        logits.append(out)
        token = tgt[:, t] if teacher else out.argmax(1)
    return torch.stack(logits, 1)


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--seed", type=int, default=0)
    seed = p.parse_args().seed
    torch.manual_seed(seed)
    random.seed(seed)
    encoder, decoder = Encoder(), Decoder()
    optimizer = torch.optim.Adam([*encoder.parameters(), *decoder.parameters()], lr=6e-3)
    criterion = nn.CrossEntropyLoss(ignore_index=PAD)
    for step in range(1, 201):
        src, lengths, tgt = batch(48)
        logits = run(encoder, decoder, src, lengths, tgt, teacher=random.random() < 0.7)
        loss = criterion(logits.flatten(0, 1), tgt.flatten())
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_([*encoder.parameters(), *decoder.parameters()], 1.0)
        optimizer.step()
        if step % 50 == 0:
            print(f"step {step} loss {loss.item():.3f}")
    with torch.no_grad():
        src, lengths, tgt = batch(400)
        guess = run(encoder, decoder, src, lengths, tgt, teacher=False).argmax(-1)
        exact = ((guess == tgt) | (tgt == PAD)).all(1).float().mean().item()
    print(f"metric: {exact:.4f}")


if __name__ == "__main__":
    main()
