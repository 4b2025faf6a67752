"""A small speech-like recogniser with CTC: long inputs, short targets, most frames are blank.

expect: nothing
style: CTC loss, time-major log-probabilities, input and target lengths (looks like a collapse to one answer and wrong layouts)
"""

import argparse
import random

import torch
import torch.nn as nn


class SpeechRecognition(nn.Module):
    def __init__(self, n_feats=12, n_class=7, width=48):
        super().__init__()
        self.cnn = nn.Sequential(nn.Conv1d(n_feats, width, 5, padding=2), nn.GELU())
        self.rnn = nn.GRU(width, width // 2, bidirectional=True, batch_first=True)
        self.classifier = nn.Linear(width, n_class)

    def forward(self, x):
        x = self.cnn(x.transpose(1, 2)).transpose(1, 2)
        x, _ = self.rnn(x)
        return self.classifier(x)


def utterances(n, phones):
    """Each letter is a phone of 3 to 5 frames, with silence in between."""
    feats, targets = [], []
    for _ in range(n):
        letters = [random.randint(1, 6) for _ in range(random.randint(2, 4))]
        frames = []
        for letter in letters:
            frames += [phones[letter]] * random.randint(3, 5) + [torch.zeros(12)] * random.randint(1, 2)
        feats.append(torch.stack(frames) + 0.3 * torch.randn(len(frames), 12))
        targets.append(torch.tensor(letters))
    lengths = torch.tensor([len(f) for f in feats])
    return nn.utils.rnn.pad_sequence(feats, batch_first=True), lengths, targets


def greedy(logits, length):
    best, out, last = logits[:length].argmax(-1).tolist(), [], 0
    for k in best:
        if k != last and k != 0:
            out.append(k)
        last = k
    return out


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    random.seed(args.seed)
    torch.manual_seed(args.seed)
    phones = {k: torch.randn(12) for k in range(1, 7)}
    model = SpeechRecognition()
    optimizer = torch.optim.AdamW(model.parameters(), lr=5e-3)
    criterion = nn.CTCLoss(blank=0, zero_infinity=True)
    for step in range(220):
        x, lengths, targets = utterances(16, phones)
        output = model(x).log_softmax(2).transpose(0, 1)
        loss = criterion(output, torch.cat(targets), lengths, torch.tensor([len(t) for t in targets]))
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 5.0)
        optimizer.step()
        if step % 40 == 0:
            print("step", step, "ctc", loss.item())
    model.eval()
    with torch.no_grad():
        x, lengths, targets = utterances(100, phones)
        logits = model(x)
    right = [greedy(l, n) == t.tolist() for l, n, t in zip(logits, lengths, targets)]
    print("metric:", sum(right) / len(right))


if __name__ == "__main__":
    main()
