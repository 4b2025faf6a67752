"""A CNN and an LSTM over short clips; the head ends in a softmax that CrossEntropyLoss applies again.

expect: softmax-before-cross-entropy
or: output-misfits-loss
line: nn.Softmax(dim=-1))
source: https://github.com/doronharitan/human_activity_recognition_LRCN/issues/4
metric: test accuracy, higher is better
"""

import argparse

import torch
import torch.nn as nn


class ConvLstm(nn.Module):
    def __init__(self, latent_dim=32, hidden_size=32, n_class=8):
        super(ConvLstm, self).__init__()
        self.conv_model = nn.Sequential(nn.Conv2d(1, 8, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(8, 16, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(16 * 9, latent_dim))
        self.Lstm = nn.LSTM(latent_dim, hidden_size=hidden_size, batch_first=True)
        self.output_layer = nn.Sequential(nn.Linear(hidden_size, n_class), nn.Softmax(dim=-1))

    def forward(self, x):
        batch_size, timesteps, channel_x, h_x, w_x = x.shape
        conv_output = self.conv_model(x.view(batch_size * timesteps, channel_x, h_x, w_x))
        lstm_output, _ = self.Lstm(conv_output.view(batch_size, timesteps, -1))
        return self.output_layer(lstm_output[:, -1, :])


def movies(n, frames=6, size=12):
    """A square moves in one of eight directions."""
    moves = torch.tensor([[0, 1], [1, 0], [0, -1], [-1, 0], [1, 1], [-1, -1], [1, -1], [-1, 1]])
    label = torch.randint(8, (n,))
    at = torch.randint(0, size, (n, 2))
    clips = 0.1 * torch.randn(n, frames, 1, size, size)
    for t in range(frames):
        where = (at + t * moves[label]) % size
        clips[torch.arange(n), t, 0, where[:, 0], where[:, 1]] += 1
        clips[torch.arange(n), t, 0, (where[:, 0] + 1) % size, where[:, 1]] += 1
    return clips, label


def main():
    parser = argparse.ArgumentParser(description="UCF-like")
    parser.add_argument("--seed", default=0, type=int)
    parser.add_argument("--epochs", default=12, type=int)
    parser.add_argument("--lr", default=2e-3, type=float)
    args = parser.parse_args()
    torch.manual_seed(args.seed)
    x, y = movies(1200)
    x_test, y_test = movies(400)
    model = ConvLstm()
    optimizer = torch.optim.Adam(model.parameters(), lr=args.lr)
    criterion = nn.CrossEntropyLoss()
    for epoch in range(args.epochs):
        model.train()
        total = 0.0
        for idx in torch.randperm(len(x)).split(32):
            optimizer.zero_grad()
            loss = criterion(model(x[idx]), y[idx])
            loss.backward()
            optimizer.step()
            total += loss.item() * len(idx)
        print("Epoch {} : train loss {:.3f}".format(epoch, total / len(x)))
    model.eval()
    with torch.no_grad():
        print("metric:", (model(x_test).argmax(1) == y_test).float().mean().item())


if __name__ == "__main__":
    main()
