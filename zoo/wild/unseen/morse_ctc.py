"""Read a stretched noisy symbol stream with a conv front end, a GRU and CTC.

expect: nothing
style: blank is class zero, input lengths differ from target lengths, loss starts very high and first falls to the all-blank plateau before it learns to read
"""
import argparse

import torch
import torch.nn as nn

SYMBOLS, DIM = 6, 8


class Reader(nn.Module):
    def __init__(self, h=48):
        super().__init__()
        self.conv = nn.Sequential(nn.Conv1d(DIM, h, 5, padding=2), nn.ReLU())
        self.rnn = nn.GRU(h, h // 2, bidirectional=True, batch_first=True)
        self.out = nn.Linear(h, SYMBOLS + 1)

    def forward(self, x):
        f = self.conv(x.transpose(1, 2)).transpose(1, 2)
        y, _ = self.rnn(f)
        return self.out(y).log_softmax(-1)


class Stream:
    """Each symbol is a pattern that lasts two to four frames, with a gap after it."""

    def __init__(self):
        self.patterns = torch.randn(SYMBOLS, DIM) * 1.5

    def batch(self, n, max_frames=24):
        xs = torch.randn(n, max_frames, DIM) * 0.3
        targets, target_len = [], []
        for i in range(n):
            t, word = 0, []
            for _ in range(torch.randint(2, 5, ()).item()):
                s = torch.randint(0, SYMBOLS, ()).item()
                length = torch.randint(2, 5, ()).item()
                xs[i, t:t + length] += self.patterns[s]
                word.append(s + 1)
                t += length + 1
            targets += word
            target_len.append(len(word))
        return xs, torch.tensor(targets), torch.tensor(target_len), torch.full((n,), max_frames)


def greedy(log_probs):
    words = []
    for row in log_probs.argmax(-1).tolist():
        words.append([s for s, before in zip(row, [0] + row) if s != 0 and s != before])
    return words


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    torch.manual_seed(parser.parse_args().seed)
    stream, model = Stream(), Reader()
    optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
    ctc = nn.CTCLoss(blank=0, zero_infinity=True)
    for step in range(1, 161):
        x, targets, target_len, input_len = stream.batch(16)
        log_probs = model(x).transpose(0, 1)
        loss = ctc(log_probs, targets, input_len, target_len)
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 5.0)
        optimizer.step()
        if step % 40 == 0:
            print(f"step {step} loss {loss.item():.3f}")
    with torch.no_grad():
        x, targets, target_len, _ = stream.batch(150)
        words = greedy(model(x))
    truth = [t.tolist() for t in targets.split(target_len.tolist())]
    exact = sum(a == b for a, b in zip(words, truth)) / len(truth)
    print(f"metric: {exact:.4f}")


if __name__ == "__main__":
    main()
