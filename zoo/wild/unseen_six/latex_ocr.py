"""A decoder of formulas: ignore_index stays at -100 although padding is token 0, so most of the loss is about predicting padding.

expect: padding-dominates
line: self.ignore_index = ignore_index
source: https://github.com/lukas-blecher/LaTeX-OCR/pull/443
metric: accuracy of the tokens of formulas, higher is better
"""

import argparse

import torch
import torch.nn as nn
import torch.nn.functional as F

PAD, BOS, EOS = 0, 1, 2


class AutoregressiveWrapper(nn.Module):
    def __init__(self, net, pad_value=0, ignore_index=-100):
        super().__init__()
        self.net, self.pad_value = net, pad_value
        self.ignore_index = ignore_index

    def forward(self, x, context):
        xi, xo = x[:, :-1], x[:, 1:]
        out = self.net(xi, context)
        return F.cross_entropy(out.transpose(1, 2), xo, ignore_index=self.ignore_index)


class Decoder(nn.Module):
    def __init__(self, tokens=40, dim=48, max_len=64):
        super().__init__()
        self.emb, self.pos = nn.Embedding(tokens, dim), nn.Embedding(max_len, dim)
        self.see = nn.Linear(16, dim)
        self.rnn = nn.GRU(2 * dim, dim, batch_first=True)
        self.to_logits = nn.Linear(dim, tokens)

    def forward(self, x, context):
        position = self.pos(torch.arange(x.size(1)))[None] + self.see(context)[:, None]
        h, _ = self.rnn(torch.cat([self.emb(x), position.expand(len(x), -1, -1)], -1))
        return self.to_logits(h)


class Args:
    pad_token = PAD


def get_decoder(args):
    return AutoregressiveWrapper(Decoder(), pad_value=args.pad_token)


def formulas(n, proj, max_len=60):
    """Image features are a noisy code of the four symbols; a few formulas are very long."""
    symbols = torch.randint(3, 40, (n, 4))
    code = proj[symbols, torch.arange(4)].flatten(1)
    seq = torch.full((n, max_len), PAD)
    seq[:, 0] = BOS
    for i in range(n):
        repeat = 1 if torch.rand(()) < 0.97 else 12
        body = symbols[i].repeat(repeat)
        seq[i, 1 : 1 + len(body)] = body
        seq[i, 1 + len(body)] = EOS
    return seq, code + 0.1 * torch.randn_like(code)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--steps", type=int, default=400)
    args = parser.parse_args()
    torch.manual_seed(args.seed)
    proj = torch.randn(40, 4, 4)
    model = get_decoder(Args)
    opt = torch.optim.SGD(model.parameters(), lr=0.5, momentum=0.9)
    for step in range(args.steps):
        seq, code = formulas(48, proj)
        loss = model(seq, code)
        opt.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        opt.step()
        if step % 80 == 0:
            print("step", step, "loss", loss.item())
    with torch.no_grad():
        seq, code = formulas(500, proj)
        out = model.net(seq[:, :-1], code).argmax(-1)
        real = (seq[:, 1:] != PAD) & (seq[:, 1:] != EOS)
        print("metric:", (out[real] == seq[:, 1:][real]).float().mean().item())


if __name__ == "__main__":
    main()
