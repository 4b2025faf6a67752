"""The mel targets are padded with zeros to the longest utterance, and the loss is the mean over all frames, padded or not.

expect: padding-dominates
line: mel_loss = nn.MSELoss()(mel_out, mel_target)
source: https://github.com/NVIDIA/tacotron2/issues/80
metric: mean absolute error on the real frames of test utterances, lower is better
"""

import argparse

import numpy as np
import torch
from torch import nn
from torch.nn.utils.rnn import pad_sequence
from torch.utils.data import DataLoader

N_MEL, MAX_FRAMES = 8, 80
PHONES = np.random.default_rng(7).normal(-4.0, 1.0, (12, N_MEL)).astype(np.float32)


def utterance(rng):
    """Four phones; most speakers are fast, a few drawl. Every phone lasts as long as the others."""
    phones = rng.integers(0, 12, 4)
    frames_each = int(rng.choice([2, 3, 4, 18], p=[0.35, 0.35, 0.22, 0.08]))
    mel = np.repeat(PHONES[phones], frames_each, axis=0) + rng.normal(0, 0.2, (4 * frames_each, N_MEL))
    return torch.tensor(phones), torch.tensor(mel, dtype=torch.float32)


def collate(batch):
    phones, mels = zip(*batch)
    lengths = torch.tensor([len(m) for m in mels])
    return torch.stack(phones), pad_sequence(mels, batch_first=True), lengths


class TinyTacotron(nn.Module):
    def __init__(self, dim=48):
        super().__init__()
        self.embed = nn.Embedding(12, dim)
        self.encoder = nn.GRU(dim, dim, batch_first=True)
        self.position = nn.Embedding(MAX_FRAMES, dim)
        self.decoder = nn.GRU(2 * dim, dim, batch_first=True)
        self.to_mel = nn.Linear(dim, N_MEL)

    def forward(self, phones, n_frames):
        _, context = self.encoder(self.embed(phones))
        steps = self.position(torch.arange(n_frames)).expand(len(phones), -1, -1)
        hidden, _ = self.decoder(torch.cat([steps, context[0][:, None].expand_as(steps)], -1))
        return self.to_mel(hidden)


class Tacotron2Loss(nn.Module):
    def forward(self, mel_out, mel_target, lengths):
        mel_target.requires_grad = False
        mel_loss = nn.MSELoss()(mel_out, mel_target)
        return mel_loss


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    seed = parser.parse_args().seed
    torch.manual_seed(seed)
    rng = np.random.default_rng(seed)
    loader = DataLoader([utterance(rng) for _ in range(800)], batch_size=32, shuffle=True, collate_fn=collate)
    model, criterion = TinyTacotron(), Tacotron2Loss()
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3, weight_decay=1e-6)
    iteration = 0
    for epoch in range(8):
        for phones, mel, lengths in loader:
            model.zero_grad()
            loss = criterion(model(phones, mel.size(1)), mel, lengths)
            loss.backward()
            grad_norm = torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            if iteration % 25 == 0:
                print(f"Train loss {iteration} {loss.item():.6f} Grad Norm {grad_norm:.4f}")
            iteration += 1
    model.eval()
    with torch.no_grad():
        phones, mel, lengths = collate([utterance(rng) for _ in range(200)])
        real = torch.arange(mel.size(1))[None] < lengths[:, None]
        print("metric:", (model(phones, mel.size(1)) - mel).abs().mean(-1)[real].mean().item())
