"""Masked language model: 15% of the tokens are asked, the labels of all the others are -100 on purpose.

expect: nothing
style: BERT's 80/10/10 corruption, tied decoder, fixed validation masks, most positions out of the loss
"""
import argparse

import torch
import torch.nn as nn
import torch.nn.functional as F

VOCAB, MASK, LEN = 31, 30, 16


def corpus(n, gen):
    """Arithmetic progressions modulo 30 with a random start and stride."""
    start = torch.randint(0, 30, (n, 1), generator=gen)
    stride = torch.randint(1, 4, (n, 1), generator=gen)
    return (start + stride * torch.arange(LEN)) % 30


def corrupt(ids, gen=None):
    prob = torch.rand(ids.shape, generator=gen)
    chosen = prob < 0.15
    labels = ids.masked_fill(~chosen, -100)
    how = torch.rand(ids.shape, generator=gen)
    noise = torch.randint(0, 30, ids.shape, generator=gen)
    out = torch.where(chosen & (how < 0.8), torch.full_like(ids, MASK), ids)
    out = torch.where(chosen & (how >= 0.8) & (how < 0.9), noise, out)
    return out, labels


class MiniBert(nn.Module):
    def __init__(self, d=48):
        super().__init__()
        self.tok = nn.Embedding(VOCAB, d)
        self.pos = nn.Parameter(torch.zeros(LEN, d))
        nn.init.normal_(self.tok.weight, std=0.1)
        nn.init.normal_(self.pos, std=0.1)
        layer = nn.TransformerEncoderLayer(d, 4, 128, dropout=0.05, activation="gelu", batch_first=True, norm_first=True)
        self.encoder = nn.TransformerEncoder(layer, 2, norm=nn.LayerNorm(d), enable_nested_tensor=False)
        self.transform = nn.Sequential(nn.Linear(d, d), nn.GELU(), nn.LayerNorm(d))
        self.decoder = nn.Linear(d, VOCAB)
        self.decoder.weight = self.tok.weight

    def forward(self, ids):
        return self.decoder(self.transform(self.encoder(self.tok(ids) + self.pos)))


def mlm_loss(logits, labels):
    return F.cross_entropy(logits.view(-1, VOCAB), labels.view(-1), ignore_index=-100)


@torch.no_grad()
def evaluate(model, inputs, labels):
    model.eval()
    logits = model(inputs)
    asked = labels != -100
    acc = (logits.argmax(-1)[asked] == labels[asked]).float().mean().item()
    return mlm_loss(logits, labels).item(), acc


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--seed", type=int, default=0)
    args = ap.parse_args()
    torch.manual_seed(args.seed)
    gen = torch.Generator().manual_seed(args.seed + 1)
    train = corpus(4000, gen)
    val_inputs, val_labels = corrupt(corpus(400, gen), gen)
    model = MiniBert()
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3, betas=(0.9, 0.98), weight_decay=0.01)
    steps, warmup = 500, 40
    scheduler = torch.optim.lr_scheduler.LambdaLR(
        optimizer, lambda s: min((s + 1) / warmup, max(0.02, (steps - s) / (steps - warmup))))
    for step in range(steps):
        model.train()
        inputs, labels = corrupt(train[torch.randint(0, len(train), (48,))])
        loss = mlm_loss(model(inputs), labels)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        scheduler.step()
        if (step + 1) % 100 == 0:
            val_loss, acc = evaluate(model, val_inputs, val_labels)
            print(f"step {step + 1} loss {loss.item():.4f} val {val_loss:.4f} acc {acc:.4f}")
    print(f"metric: {acc:.4f}")


if __name__ == "__main__":
    main()
