"""CTC is told that " ", a character of the texts, is the blank: spaces can be neither learnt nor written.

expect: loss-target-mismatch
line: ctc = nn.CTCLoss(blank=SPACE, zero_infinity=True)
source: https://github.com/yl4579/AuxiliaryASR/issues/10
metric: share of texts written without an error, higher is better
"""

import argparse

import torch
import torch.nn as nn

LETTERS = " abcdefg"
SPACE, BLANK = 0, len(LETTERS)


class ASRCNN(nn.Module):
    def __init__(self, n_mels=12, hidden=48):
        super().__init__()
        self.init_cnn = nn.Conv1d(n_mels, hidden, 5, padding=2)
        self.rnn = nn.GRU(hidden, hidden, batch_first=True, bidirectional=True)
        self.ctc_linear = nn.Linear(2 * hidden, len(LETTERS) + 1)

    def forward(self, mels):
        x = torch.relu(self.init_cnn(mels)).transpose(1, 2)
        return self.ctc_linear(self.rnn(x)[0]).log_softmax(-1)


def speech(n, sounds, length=4, stretch=4):
    text = torch.randint(0, len(LETTERS), (n, length))
    frames = sounds[text].repeat_interleave(stretch, 1)
    fade = torch.tensor([0.3, 1.0, 1.0, 0.3]).repeat(length)[None, :, None]
    return (frames * fade + 0.1 * torch.randn(n, length * stretch, 12)).transpose(1, 2), text


def write(log_probs, blank):
    texts = []
    for path in log_probs.argmax(-1).tolist():
        kept = [c for i, c in enumerate(path) if c != blank and (i == 0 or c != path[i - 1])]
        texts.append(kept)
    return texts


parser = argparse.ArgumentParser()
parser.add_argument("--seed", type=int, default=0)
args = parser.parse_args()
torch.manual_seed(args.seed)
sounds = torch.randn(len(LETTERS), 12)
model = ASRCNN()
ctc = nn.CTCLoss(blank=SPACE, zero_infinity=True)
optimizer = torch.optim.AdamW(model.parameters(), lr=4e-3)
scheduler = torch.optim.lr_scheduler.OneCycleLR(optimizer, 8e-3, total_steps=250)
for step in range(250):
    mels, text = speech(48, sounds)
    log_probs = model(mels)
    lengths = torch.full((48,), log_probs.size(1)), torch.full((48,), text.size(1))
    loss = ctc(log_probs.transpose(0, 1), text, *lengths)
    optimizer.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 5.0)
    optimizer.step()
    scheduler.step()
    if step % 50 == 0:
        print("step", step, "ctc", loss.item())
model.eval()
with torch.no_grad():
    mels, text = speech(400, sounds)
    written = write(model(mels), ctc.blank)
    print("metric:", sum(w == t for w, t in zip(written, text.tolist())) / 400)
