"""Number plates of unknown length are read with CTC; at first the network says nothing but blanks, as it does.

expect: nothing
style: CTCLoss with the blank at the end, convolution and GRU, greedy decoding
metric: share of plates read without an error, higher is better
"""

import argparse

import torch
import torch.nn as nn

DIGITS = 6
BLANK = DIGITS


class CRNN(nn.Module):
    def __init__(self):
        super().__init__()
        self.cnn = nn.Sequential(nn.Conv2d(1, 12, 3, padding=1), nn.ReLU(), nn.MaxPool2d((2, 1)), nn.Conv2d(12, 16, 3, padding=1), nn.ReLU(), nn.AdaptiveMaxPool2d((1, None)))
        self.rnn = nn.GRU(16, 32, bidirectional=True, batch_first=True)
        self.out = nn.Linear(64, DIGITS + 1)

    def forward(self, x):
        h = self.cnn(x).squeeze(2).transpose(1, 2)
        return self.out(self.rnn(h)[0]).log_softmax(-1)


def plates(n, glyphs):
    length = torch.randint(3, 6, (n,))
    image = 0.15 * torch.randn(n, 1, 6, 28)
    text = torch.zeros(n, 5, dtype=torch.long)
    for i in range(n):
        at = int(torch.randint(0, 3, (1,)))
        for k in range(int(length[i])):
            c = int(torch.randint(0, DIGITS, (1,)))
            text[i, k] = c
            image[i, 0, :, at : at + 4] += glyphs[c]
            at += 5
    return image, text, length


def read(log_probs):
    out = []
    for path in log_probs.argmax(-1).tolist():
        out.append([c for j, c in enumerate(path) if c != BLANK and (j == 0 or path[j - 1] != c)])
    return out


parser = argparse.ArgumentParser()
parser.add_argument("--seed", type=int, default=0)
parser.add_argument("--steps", type=int, default=420)
args = parser.parse_args()
torch.manual_seed(args.seed)
glyphs = (torch.rand(DIGITS, 6, 4) > 0.5).float()
model, ctc = CRNN(), nn.CTCLoss(blank=BLANK, zero_infinity=True)
optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
pool = plates(2500, glyphs)
for step in range(args.steps):
    pick = torch.randint(0, 2500, (32,))
    image, text, length = (part[pick] for part in pool)
    log_probs = model(image)
    loss = ctc(log_probs.transpose(0, 1), text, torch.full((32,), log_probs.size(1)), length)
    optimizer.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 5.0)
    optimizer.step()
    if step % 50 == 0:
        print("step", step, "ctc", loss.item())
model.eval()
with torch.no_grad():
    image, text, length = plates(300, glyphs)
    right = [w == t[:k] for w, t, k in zip(read(model(image)), text.tolist(), length.tolist())]
print("metric:", sum(right) / 300)
