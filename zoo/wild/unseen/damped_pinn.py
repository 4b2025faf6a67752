"""Physics-informed network for a damped oscillator: Adam first, then LBFGS on the same points.

expect: nothing
style: no data at all, targets are zero, second derivatives with create_graph, the same 80 collocation points every step, LBFGS with a closure at the end
"""
import argparse

import torch
from torch import nn

# u'' + 2 d u' + w^2 u = 0, u(0) = 1, u'(0) = 0
D, W = 0.6, 3.0


def exact(t):
    w = (W ** 2 - D ** 2) ** 0.5
    return torch.exp(-D * t) * (torch.cos(w * t) + D / w * torch.sin(w * t))


class FCN(nn.Module):
    def __init__(self, h=24):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(1, h), nn.Tanh(), nn.Linear(h, h), nn.Tanh(), nn.Linear(h, 1))

    def forward(self, t):
        return self.net(t - 1.0)


def derivative(u, t):
    return torch.autograd.grad(u, t, torch.ones_like(u), create_graph=True)[0]


def pinn_loss(model, t_phys, t0):
    u0 = model(t0)
    start = (u0 - 1).pow(2).mean() + 0.1 * derivative(u0, t0).pow(2).mean()
    u = model(t_phys)
    du = derivative(u, t_phys)
    ddu = derivative(du, t_phys)
    residual = ddu + 2 * D * du + W ** 2 * u
    return start + 1e-2 * residual.pow(2).mean()


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--seed", type=int, default=0)
    torch.manual_seed(ap.parse_args().seed)
    model = FCN()
    t_phys = torch.linspace(0, 2, 80).view(-1, 1).requires_grad_(True)
    t0 = torch.zeros(1, 1, requires_grad=True)

    adam = torch.optim.Adam(model.parameters(), lr=3e-3)
    for step in range(400):
        adam.zero_grad()
        loss = pinn_loss(model, t_phys, t0)
        loss.backward()
        adam.step()
    print(f"after Adam: {loss.item():.2e}")

    lbfgs = torch.optim.LBFGS(model.parameters(), max_iter=15, line_search_fn="strong_wolfe")

    def closure():
        lbfgs.zero_grad()
        value = pinn_loss(model, t_phys, t0)
        value.backward()
        return value

    for _ in range(15):
        loss = lbfgs.step(closure)
    print(f"after LBFGS: {loss.item():.2e}")
    t = torch.linspace(0, 2, 200).view(-1, 1)
    with torch.no_grad():
        error = (model(t) - exact(t)).abs().max().item()
    print(f"metric: {error:.5f}")


if __name__ == "__main__":
    main()
