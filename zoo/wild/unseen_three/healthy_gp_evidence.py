"""A Gaussian process learns its lengthscales, signal and noise by the marginal likelihood, all points in every step.

expect: nothing
style: invites 'repeated batch', 'samples mixed', 'negative loss' and 'learning rate too high': an exact GP has no batches, its evidence couples all points, a log density may have either sign, and 0.1 is usual for the few log-parameters
"""
import sys
import math

import numpy as np
import torch

seed = int(sys.argv[sys.argv.index("--seed") + 1]) if "--seed" in sys.argv else 0
torch.manual_seed(seed)
torch.set_default_dtype(torch.float64)


class ExactGP(torch.nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.log_lengthscale = torch.nn.Parameter(torch.full((dim,), -0.7))
        self.log_outputscale = torch.nn.Parameter(torch.zeros(()))
        self.log_noise = torch.nn.Parameter(torch.tensor(-3.0))
        self.mean = torch.nn.Parameter(torch.zeros(()))

    def kernel(self, a, b):
        ell = self.log_lengthscale.exp()
        d2 = ((a[:, None] / ell - b[None] / ell) ** 2).sum(-1)
        return self.log_outputscale.exp() * torch.exp(-0.5 * d2)

    def cholesky(self, X):
        K = self.kernel(X, X) + self.log_noise.exp() * torch.eye(len(X))
        return torch.linalg.cholesky(K)

    def neg_log_evidence(self, X, y):
        L = self.cholesky(X)
        r = (y - self.mean).unsqueeze(1)
        alpha = torch.cholesky_solve(r, L)
        n = len(y)
        return (0.5 * (r * alpha).sum() + L.diagonal().log().sum() + 0.5 * n * math.log(2 * math.pi)) / n

    @torch.no_grad()
    def predict(self, X, y, Xs):
        L = self.cholesky(X)
        Ks = self.kernel(X, Xs)
        return self.mean + Ks.T @ torch.cholesky_solve((y - self.mean).unsqueeze(1), L)[:, 0]


def function(X):
    return torch.sin(3 * X[:, 0]) + 0.5 * torch.cos(3 * X[:, 1]) * X[:, 0]      # the third input does nothing


X = torch.rand(300, 3) * 4 - 2
y_clean = function(X)
y = y_clean + 0.05 * torch.randn(len(X))
y_mean, y_std = y.mean(), y.std()
y = (y - y_mean) / y_std
X_test = torch.rand(500, 3) * 3.8 - 1.9

gp = ExactGP(3)
optimizer = torch.optim.Adam(gp.parameters(), lr=0.1)
for i in range(150):
    optimizer.zero_grad()
    loss = gp.neg_log_evidence(X, y)
    loss.backward()
    optimizer.step()
    if i % 30 == 29:
        print("iter %d/150 loss %.4f lengthscales %s noise %.4f" % (
            i + 1, loss.item(), np.round(gp.log_lengthscale.exp().tolist(), 2), gp.log_noise.exp().item()))

pred = gp.predict(X, y, X_test) * y_std + y_mean
truth = function(X_test)
print("metric: %.4f" % (1 - ((pred - truth) ** 2).mean() / truth.var()).item())
