"""A linear autoencoder on purpose: its reconstruction error must come down to that of PCA with as many components.

expect: nothing
style: invites 'missing activation' and 'target is input': two linear layers with nothing between are the point (the space they span is that of the principal components), and an autoencoder's target is its input
"""
import argparse

import numpy as np
import torch
from sklearn.datasets import load_digits
from sklearn.decomposition import PCA
from torch import nn


class LinearAutoencoder(nn.Module):
    def __init__(self, n_features, n_components):
        super().__init__()
        self.encode = nn.Linear(n_features, n_components, bias=False)
        self.decode = nn.Linear(n_components, n_features, bias=False)
        nn.init.orthogonal_(self.encode.weight)
        with torch.no_grad():
            self.decode.weight.copy_(self.encode.weight.T)

    def forward(self, x):
        return self.decode(self.encode(x))


def main():
    ap = argparse.ArgumentParser(description=__doc__)
    ap.add_argument("--seed", type=int, default=0)
    ap.add_argument("--components", type=int, default=12)
    ap.add_argument("--epochs", type=int, default=40)
    args = ap.parse_args()
    torch.manual_seed(args.seed)

    X = load_digits().data / 16.0
    X = X[np.random.default_rng(args.seed).permutation(len(X))]
    X_train, X_test = X[:1400], X[1400:]
    mean = X_train.mean(0)
    scale = X_train.std()
    pca = PCA(args.components).fit(X_train)
    pca_mse = np.mean((pca.inverse_transform(pca.transform(X_test)) - X_test) ** 2)

    x_train = torch.tensor((X_train - mean) / scale, dtype=torch.float32)
    x_test = torch.tensor((X_test - mean) / scale, dtype=torch.float32)

    model = LinearAutoencoder(64, args.components)
    opt = torch.optim.Adam(model.parameters(), lr=3e-3)
    sched = torch.optim.lr_scheduler.CosineAnnealingLR(opt, args.epochs)
    for epoch in range(args.epochs):
        for idx in torch.randperm(len(x_train)).split(64):
            batch = x_train[idx]
            loss = nn.functional.mse_loss(model(batch), batch)
            opt.zero_grad()
            loss.backward()
            opt.step()
        sched.step()
        if epoch % 8 == 7:
            with torch.no_grad():
                test = nn.functional.mse_loss(model(x_test), x_test).item()
            print(f"epoch {epoch + 1}: train {loss.item():.4f} test {test:.4f}")

    mse = test * scale ** 2
    print(f"PCA {pca_mse:.6f}, linear autoencoder {mse:.6f}")
    print(f"metric: {mse / pca_mse:.4f}")


if __name__ == "__main__":
    main()
