"""Wine cultivar from chemistry, trained on standardized features, with a separate scoring function for new bottles; the scoring function forgot the scaler and fed raw values of up to 1700 to the network.

expect: evaluation-scale
line: x = torch.tensor(samples, dtype=torch.float32)
source: https://github.com/HYU-AGI/Ensemble-Meta-Scoring/issues/3
metric: accuracy on new bottles, higher is better
"""
import argparse

import numpy as np
import torch
import torch.nn as nn
from sklearn.datasets import load_wine
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler


class MetaScorer:
    def __init__(self, n_features, n_classes, seed):
        torch.manual_seed(seed)
        self.scaler = StandardScaler()
        self.net = nn.Sequential(
            nn.Linear(n_features, 32), nn.ReLU(), nn.Linear(32, 32), nn.ReLU(), nn.Linear(32, n_classes)
        )

    def train(self, samples, labels, epochs=50, batch_size=16):
        x = torch.tensor(self.scaler.fit_transform(samples), dtype=torch.float32)
        y = torch.tensor(labels)
        optimizer = torch.optim.Adam(self.net.parameters(), lr=2e-3)
        criterion = nn.CrossEntropyLoss()
        self.net.train()
        for epoch in range(epochs):
            losses = []
            for idx in torch.randperm(len(x)).split(batch_size):
                optimizer.zero_grad()
                loss = criterion(self.net(x[idx]), y[idx])
                loss.backward()
                optimizer.step()
                losses.append(loss.item())
            if (epoch + 1) % 10 == 0:
                print(f"[train] epoch {epoch + 1} loss {np.mean(losses):.4f}")

    def scoring(self, samples):
        self.net.eval()
        with torch.no_grad():
            x = torch.tensor(samples, dtype=torch.float32)
            return self.net(x).softmax(dim=1).numpy()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    x, y = load_wine(return_X_y=True)
    x_train, x_new, y_train, y_new = train_test_split(x, y, test_size=0.4, random_state=args.seed, stratify=y)
    scorer = MetaScorer(x.shape[1], 3, args.seed)
    scorer.train(x_train, y_train)
    accuracy = (scorer.scoring(x_new).argmax(axis=1) == y_new).mean()
    print(f"metric: {accuracy:.4f}")


if __name__ == "__main__":
    main()
