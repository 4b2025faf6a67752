"""The padding token is the end token, and padding is taken out of the loss: the model never learns to stop.

expect: end-never-learnt
line: PAD = EOS
source: https://github.com/huggingface/trl/issues/976
metric: exact match of completions, higher is better
"""

import argparse
import random

import torch
import torch.nn as nn
import torch.nn.functional as F

LETTERS = list(range(0, 6))
NUMBERS = {2: 6, 3: 7, 4: 8, 5: 9, 6: 10}
EOS = 11
PAD = EOS
VOCAB_SIZE = 13
MAX_NEW = 10


def make_example(rng):
    count = rng.choice(list(NUMBERS))
    letter = rng.choice(LETTERS)
    return [NUMBERS[count], letter], [letter] * (count - 1) + [EOS]


def collate(examples):
    width = max(len(p) + len(c) for p, c in examples)
    input_ids = torch.full((len(examples), width), PAD)
    for row, (prompt, completion) in enumerate(examples):
        tokens = prompt + completion
        input_ids[row, : len(tokens)] = torch.tensor(tokens)
    labels = input_ids.clone()
    labels[labels == PAD] = -100
    labels[:, :2] = -100
    return input_ids, labels


class TinyLM(nn.Module):
    def __init__(self, dim=64):
        super().__init__()
        self.embed = nn.Embedding(VOCAB_SIZE, dim)
        self.rnn = nn.GRU(dim, dim, batch_first=True)
        self.lm_head = nn.Linear(dim, VOCAB_SIZE)

    def forward(self, input_ids, labels=None):
        hidden, _ = self.rnn(self.embed(input_ids))
        logits = self.lm_head(hidden)
        if labels is None:
            return logits
        loss = F.cross_entropy(logits[:, :-1].reshape(-1, VOCAB_SIZE), labels[:, 1:].reshape(-1))
        return logits, loss

    @torch.no_grad()
    def generate(self, prompt):
        tokens = list(prompt)
        for _ in range(MAX_NEW):
            nxt = self(torch.tensor([tokens]))[0, -1].argmax().item()
            tokens.append(nxt)
            if nxt == EOS:
                break
        return tokens[len(prompt) :]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--steps", type=int, default=500)
    args = parser.parse_args()
    torch.manual_seed(args.seed)
    rng = random.Random(args.seed)

    model = TinyLM()
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
    for step in range(args.steps):
        input_ids, labels = collate([make_example(rng) for _ in range(32)])
        _, loss = model(input_ids, labels)
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        if step % 100 == 0:
            print(f"step {step} loss {loss.item():.4f}")

    model.eval()
    tests = [make_example(rng) for _ in range(100)]
    hits = sum(model.generate(prompt) == completion for prompt, completion in tests)
    print("metric:", hits / len(tests))


if __name__ == "__main__":
    main()
