"""Small GPT-style character model with tied embeddings, stopped in the middle and resumed from a checkpoint.

expect: nothing
style: model, optimizer, schedule and random state are saved to memory at half time and loaded into fresh objects; the output layer shares its weight with the embedding; weight decay only on matrices
"""
import argparse
import io
import math

import torch
import torch.nn as nn
import torch.nn.functional as F

PHRASES = ["the cat sat on the mat", "a dog ran in the park", "the sun is hot", "we like red apples",
           "rain falls on the roof", "she reads a long book"]


class Block(nn.Module):
    def __init__(self, d, heads):
        super().__init__()
        self.heads = heads
        self.ln1, self.ln2 = nn.LayerNorm(d), nn.LayerNorm(d)
        self.qkv, self.proj = nn.Linear(d, 3 * d, bias=False), nn.Linear(d, d)
        self.mlp = nn.Sequential(nn.Linear(d, 2 * d), nn.GELU(), nn.Linear(2 * d, d))

    def forward(self, x):
        b, t, d = x.shape
        q, k, v = self.qkv(self.ln1(x)).view(b, t, 3, self.heads, d // self.heads).permute(2, 0, 3, 1, 4)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.proj(y.transpose(1, 2).reshape(b, t, d))
        return x + self.mlp(self.ln2(x))


class GPT(nn.Module):
    def __init__(self, vocab, d=32, heads=4, layers=2, ctx=24):
        super().__init__()
        self.ctx = ctx
        self.wte, self.wpe = nn.Embedding(vocab, d), nn.Embedding(ctx, d)
        self.blocks = nn.Sequential(*[Block(d, heads) for _ in range(layers)])
        self.ln_f = nn.LayerNorm(d)
        self.lm_head = nn.Linear(d, vocab, bias=False)
        self.lm_head.weight = self.wte.weight
        nn.init.normal_(self.wte.weight, std=0.02)
        nn.init.normal_(self.wpe.weight, std=0.02)

    def forward(self, idx):
        x = self.wte(idx) + self.wpe(torch.arange(idx.size(1)))
        return self.lm_head(self.ln_f(self.blocks(x)))


def build(vocab, total):
    model = GPT(vocab)
    decay = [p for p in model.parameters() if p.dim() >= 2]
    rest = [p for p in model.parameters() if p.dim() < 2]
    optimizer = torch.optim.AdamW([{"params": decay, "weight_decay": 0.1}, {"params": rest, "weight_decay": 0.0}],
                                  lr=5e-3, betas=(0.9, 0.95))

    def rate(step):
        if step < 20:
            return (step + 1) / 20
        return 0.1 + 0.45 * (1 + math.cos(math.pi * (step - 20) / (total - 20)))

    return model, optimizer, torch.optim.lr_scheduler.LambdaLR(optimizer, rate)


def train(model, optimizer, scheduler, data, steps):
    for _ in range(steps):
        start = torch.randint(0, len(data) - model.ctx - 1, (16,))
        x = torch.stack([data[s:s + model.ctx] for s in start])
        y = torch.stack([data[s + 1:s + model.ctx + 1] for s in start])
        loss = F.cross_entropy(model(x).flatten(0, 1), y.flatten())
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        scheduler.step()
    print(f"loss {loss.item():.3f}")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    torch.manual_seed(parser.parse_args().seed)
    text = ". ".join(PHRASES[i] for i in torch.randint(0, len(PHRASES), (400,)))
    chars = sorted(set(text))
    data = torch.tensor([chars.index(c) for c in text])
    train_data, test_data = data[:-1500], data[-1500:]

    first = build(len(chars), 200)
    train(*first, train_data, 100)
    file = io.BytesIO()
    torch.save({"parts": [part.state_dict() for part in first], "rng": torch.get_rng_state()}, file)
    del first

    file.seek(0)
    checkpoint = torch.load(file)
    resumed = build(len(chars), 200)
    for part, state in zip(resumed, checkpoint["parts"]):
        part.load_state_dict(state)
    torch.set_rng_state(checkpoint["rng"])
    train(*resumed, train_data, 100)

    model = resumed[0].eval()
    with torch.no_grad():
        n = (len(test_data) - 1) // model.ctx
        x = test_data[:n * model.ctx].view(n, -1)
        y = test_data[1:n * model.ctx + 1].view(n, -1)
        bits = F.cross_entropy(model(x).flatten(0, 1), y.flatten()).item() / math.log(2)
    print(f"metric: {bits:.4f}")


if __name__ == "__main__":
    main()
