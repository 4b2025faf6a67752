"""A text classifier is put into eval mode by the first evaluation and never back: from the second epoch on it trains without dropout.

expect: eval-mode-training
line: model.train()
source: https://github.com/hendrycks/ethics/issues/5
metric: test accuracy, higher is better
"""

import argparse

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class TextModel(nn.Module):
    def __init__(self, vocab=400, dim=64, drop=0.6):
        super().__init__()
        self.emb = nn.EmbeddingBag(vocab, dim)
        self.drop_in, self.drop = nn.Dropout(drop), nn.Dropout(drop)
        self.fc1, self.fc2 = nn.Linear(dim, 256), nn.Linear(256, 1)

    def forward(self, x):
        return self.fc2(self.drop(torch.relu(self.fc1(self.drop_in(self.emb(x)))))).squeeze(1)


def load(n, rng, worth):
    x = rng.integers(0, 400, (n, 40))
    y = (worth[x].sum(1) + 1.5 * rng.standard_normal(n) > 0).astype(np.float32)
    return TensorDataset(torch.tensor(x), torch.tensor(y))


def evaluate(model, dataloader):
    model.eval()
    cors = []
    with torch.no_grad():
        for x, y in dataloader:
            cors.append(((model(x) > 0).float() == y).numpy())
    return np.concatenate(cors).mean()


def train(model, optimizer, train_dataloader, epoch):
    criterion = nn.BCEWithLogitsLoss()
    for step, (x, y) in enumerate(train_dataloader):
        optimizer.zero_grad()
        loss = criterion(model(x), y)
        loss.backward()
        optimizer.step()
    print("epoch", epoch, "loss", loss.item())


def main(args):
    torch.manual_seed(args.seed)
    rng = np.random.default_rng(args.seed)
    worth = rng.standard_normal(400) * 0.6
    train_loader = DataLoader(load(500, rng, worth), batch_size=16, shuffle=True)
    test_loader = DataLoader(load(2000, rng, worth), batch_size=200)
    model = TextModel()
    model.train()
    optimizer = torch.optim.AdamW(model.parameters(), lr=args.learning_rate, weight_decay=0.01)
    for epoch in range(1, args.nepochs + 1):
        train(model, optimizer, train_loader, epoch)
        test_acc = evaluate(model, test_loader)
        print("test acc", test_acc)
    print("metric:", test_acc)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--nepochs", type=int, default=25)
    parser.add_argument("--learning_rate", type=float, default=3e-3)
    main(parser.parse_args())
