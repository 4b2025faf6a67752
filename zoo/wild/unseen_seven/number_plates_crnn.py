"""Reading numbers with CTC: the blank is the last index, but decoding throws away the index nought, which is the digit 0.

expect: evaluation-decoding
or: class-ignored
line: return [j for j in kept if j != 0]
source: https://github.com/raidastauras/tf2-crnn/issues/1
metric: share of numbers read rightly, higher is better
"""

import argparse

import torch
import torch.nn as nn

CHARS = "0123456789"
BLANK = len(CHARS)


def strips(n, font, length=4, noise=0.3):
    """A strip of columns, in which digits of three columns stand at uneven distances."""
    labels = torch.randint(10, (n, length))
    x = noise * torch.randn(n, 28, 8)
    for i in range(n):
        at = int(torch.randint(0, 3, ()))
        for digit in labels[i].tolist():
            x[i, at : at + 3] += font[digit]
            at += 5 + int(torch.randint(0, 3, ()))
    return x, labels


class CRNN(nn.Module):
    def __init__(self, hidden=48):
        super().__init__()
        self.conv = nn.Sequential(nn.Conv1d(8, 48, 3, padding=1), nn.ReLU())
        self.rnn = nn.GRU(48, hidden, bidirectional=True, batch_first=True)
        self.out = nn.Linear(2 * hidden, len(CHARS) + 1)

    def forward(self, x):
        h = self.conv(x.transpose(1, 2)).transpose(1, 2)
        return self.out(self.rnn(h)[0]).log_softmax(-1)


def decode(row):
    """Greedy: repeats are merged, blanks are dropped."""
    merged = [int(a) for i, a in enumerate(row) if i == 0 or a != row[i - 1]]
    kept = [j for j in merged if j != BLANK]
    return [j for j in kept if j != 0]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--epochs", type=int, default=12)
    args = parser.parse_args()
    torch.manual_seed(args.seed)
    font = torch.randn(10, 3, 8)
    x, y = strips(800, font)
    x_test, y_test = strips(300, font)
    model, ctc = CRNN(), nn.CTCLoss(blank=BLANK)
    optimizer = torch.optim.Adam(model.parameters(), lr=4e-3)
    for epoch in range(args.epochs):
        total = 0.0
        for idx in torch.randperm(len(x)).split(32):
            log_probs = model(x[idx]).transpose(0, 1)
            loss = ctc(log_probs, y[idx], torch.full((len(idx),), 28), torch.full((len(idx),), 4))
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 5.0)
            optimizer.step()
            total += loss.item()
        print(f"Epoch {epoch + 1}: ctc_loss {total / 25:.4f}")
    with torch.no_grad():
        read = [decode(row) for row in model(x_test).argmax(-1).tolist()]
    for guess, truth in list(zip(read, y_test.tolist()))[:3]:
        print("".join(CHARS[j] for j in guess), "|", "".join(CHARS[j] for j in truth))
    print("metric:", sum(guess == truth for guess, truth in zip(read, y_test.tolist())) / len(read))


if __name__ == "__main__":
    main()
