"""The decoder is fed the words that it has to write at the same step: nothing moves the target to the right.

expect: target-shifted
or: target-is-input, sees-the-future
line: output = model(src, trg[:, 1:])
source: https://github.com/jadore801120/attention-is-all-you-need-pytorch/issues/123
metric: share of test words that greedy decoding gets right, higher is better
"""

import argparse

import torch
import torch.nn as nn

SOS, EOS, FIRST = 0, 1, 2
N_WORDS, LENGTH = 14, 6


class Seq2Seq(nn.Module):
    def __init__(self, hid=64):
        super().__init__()
        self.src_embed = nn.Embedding(N_WORDS, hid)
        self.trg_embed = nn.Embedding(N_WORDS, hid)
        self.encoder = nn.GRU(hid, hid, batch_first=True)
        self.decoder = nn.GRU(hid, hid, batch_first=True)
        self.attend = nn.Linear(hid, hid, bias=False)
        self.out = nn.Linear(2 * hid, N_WORDS)

    def forward(self, src, trg):
        memory, hidden = self.encoder(self.src_embed(src))
        states, _ = self.decoder(self.trg_embed(trg), hidden)
        weights = torch.softmax(self.attend(states) @ memory.transpose(1, 2), -1)
        return self.out(torch.cat([states, weights @ memory], -1))

    @torch.no_grad()
    def translate(self, src):
        written = torch.full((len(src), 1), SOS)
        for _ in range(LENGTH):
            step = self(src, written)[:, -1].argmax(-1, keepdim=True)
            written = torch.cat([written, step], 1)
        return written[:, 1:]


def pairs(n):
    """The other language says the sentence backwards, with every word replaced."""
    src = torch.randint(FIRST, N_WORDS, (n, LENGTH))
    trg = (src.flip(1) - FIRST + 5) % (N_WORDS - FIRST) + FIRST
    sos, eos = torch.full((n, 1), SOS), torch.full((n, 1), EOS)
    return src, torch.cat([sos, trg, eos], 1)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    torch.manual_seed(parser.parse_args().seed)
    model = Seq2Seq()
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    criterion = nn.CrossEntropyLoss()
    src_train, trg_train = pairs(3000)
    for epoch in range(8):
        model.train()
        losses = []
        for rows in torch.randperm(3000).split(50):
            src, trg = src_train[rows], trg_train[rows]
            output = model(src, trg[:, 1:])
            loss = criterion(output.reshape(-1, N_WORDS), trg[:, 1:].reshape(-1))
            optimizer.zero_grad()
            loss.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1)
            optimizer.step()
            losses.append(loss.item())
        print(f"Epoch {epoch + 1} | Train Loss: {sum(losses) / len(losses):.3f}")
    model.eval()
    src, trg = pairs(300)
    print("metric:", (model.translate(src) == trg[:, 1:-1]).float().mean().item())


if __name__ == "__main__":
    main()
