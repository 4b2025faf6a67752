"""My collator shifts the labels by one and GPT2LMHeadModel shifts them again: the model learned the token after next.

expect: target-shifted
line: labels = rows[:, 1:]
source: https://github.com/GanjinZero/RRHF/issues/49
metric: accuracy of the next token on held-out text, higher is better
"""

import argparse
import random

import torch
from torch.utils.data import DataLoader
from transformers import GPT2Config, GPT2LMHeadModel


class DataCollatorForSupervisedDataset(object):
    """Collate examples for supervised fine-tuning."""

    def __call__(self, instances):
        rows = torch.tensor(instances)
        input_ids = rows[:, :-1]
        labels = rows[:, 1:]
        return dict(input_ids=input_ids, labels=labels)


def text(n, length, rng, table):
    rows = []
    for _ in range(n):
        row = [rng.randrange(20)]
        while len(row) < length:
            row.append(rng.choice(table[row[-1]]))
        rows.append(row)
    return rows


def train():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    torch.manual_seed(args.seed)
    rng = random.Random(args.seed)
    table = {}
    for token in range(20):
        likely, rare = rng.sample(range(20), 2)
        table[token] = [likely] * 8 + [rare] * 2

    config = GPT2Config(
        vocab_size=20, n_positions=32, n_embd=32, n_layer=2, n_head=2, resid_pdrop=0.0, embd_pdrop=0.0, attn_pdrop=0.0,
        bos_token_id=0, eos_token_id=0,
    )
    model = GPT2LMHeadModel(config)
    loader = DataLoader(
        text(1600, 17, rng, table), batch_size=32, shuffle=True, collate_fn=DataCollatorForSupervisedDataset()
    )
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
    model.train()
    for epoch in range(4):
        for batch in loader:
            outputs = model(**batch)
            optimizer.zero_grad()
            outputs.loss.backward()
            optimizer.step()
        print({"epoch": epoch, "loss": outputs.loss.item()})

    model.eval()
    held_out = torch.tensor(text(200, 17, rng, table))
    with torch.no_grad():
        logits = model(input_ids=held_out[:, :-1]).logits
    print("metric:", (logits.argmax(-1) == held_out[:, 1:]).float().mean().item())


if __name__ == "__main__":
    train()
