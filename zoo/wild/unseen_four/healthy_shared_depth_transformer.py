"""One transformer layer applied four times (ALBERT / universal transformer manner): parentheses balanced or not.

expect: nothing
style: a single layer shared over depth on purpose, attention mask from padding, mean pooling over real tokens
"""
import argparse
import random

import torch
import torch.nn as nn
from torch.utils.data import DataLoader

PAD, CLS, OPEN, CLOSE, LB, RB = range(6)


def balanced(length):
    out, stack = [], []
    while len(out) < length:
        if stack and (len(stack) >= length - len(out) or random.random() < 0.5):
            out.append(stack.pop())
        else:
            o, c = random.choice([(OPEN, CLOSE), (LB, RB)])
            out.append(o)
            stack.append(c)
    return out


def is_balanced(seq):
    stack = []
    for t in seq:
        if t in (OPEN, LB):
            stack.append(CLOSE if t == OPEN else RB)
        elif not stack or stack.pop() != t:
            return False
    return not stack


def example():
    seq = balanced(2 * random.randint(3, 8))
    if random.random() < 0.5:  # swap the kind or direction of one or three brackets
        for pos in random.sample(range(len(seq)), random.choice([1, 3])):
            seq[pos] = random.choice([t for t in (OPEN, CLOSE, LB, RB) if t != seq[pos]])
    return [CLS] + seq, float(is_balanced(seq))


def collate(batch):
    width = max(len(s) for s, _ in batch)
    ids = torch.tensor([s + [PAD] * (width - len(s)) for s, _ in batch])
    return ids, torch.tensor([y for _, y in batch])


class SharedTransformer(nn.Module):
    def __init__(self, d=48, heads=4, repeats=4, max_len=32):
        super().__init__()
        self.repeats = repeats
        self.tok = nn.Embedding(6, d, padding_idx=PAD)
        self.pos = nn.Embedding(max_len, d)
        nn.init.normal_(self.pos.weight, std=0.3)
        self.block = nn.TransformerEncoderLayer(d, heads, 2 * d, dropout=0.0, batch_first=True, norm_first=True)
        self.norm = nn.LayerNorm(d)
        self.head = nn.Linear(d, 1)

    def forward(self, ids):
        mask = ids == PAD
        x = self.tok(ids) + self.pos.weight[: ids.size(1)]
        for _ in range(self.repeats):
            x = self.block(x, src_key_padding_mask=mask)
        x = self.norm(x).masked_fill(mask[..., None], 0.0)
        return self.head(x.sum(1) / (~mask).sum(1, keepdim=True)).squeeze(-1)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    random.seed(args.seed)
    torch.manual_seed(args.seed)
    train = DataLoader([example() for _ in range(4000)], batch_size=64, shuffle=True, collate_fn=collate)
    test = DataLoader([example() for _ in range(1000)], batch_size=250, collate_fn=collate)
    model = SharedTransformer()
    epochs = 4
    opt = torch.optim.AdamW(model.parameters(), lr=3e-3, weight_decay=0.01)
    sched = torch.optim.lr_scheduler.OneCycleLR(opt, max_lr=3e-3, total_steps=epochs * len(train), pct_start=0.1)
    criterion = nn.BCEWithLogitsLoss()
    for epoch in range(epochs):
        model.train()
        total = 0.0
        for ids, y in train:
            opt.zero_grad()
            loss = criterion(model(ids), y)
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            opt.step()
            sched.step()
            total += loss.item()
        model.eval()
        right = 0
        with torch.no_grad():
            for ids, y in test:
                right += ((model(ids) > 0).float() == y).sum().item()
        print(f"epoch {epoch} loss {total / len(train):.4f} acc {right / 1000:.3f}")
    print(f"metric: {right / 1000:.4f}")


if __name__ == "__main__":
    main()
