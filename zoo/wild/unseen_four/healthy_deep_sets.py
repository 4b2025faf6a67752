"""Deep Sets: both radii of an ellipse from an unordered cloud of points, order ignored on purpose.

expect: nothing
style: phi / masked mean / rho, sets of different size padded with a mask, permutation invariance asserted
"""
import argparse

import torch
import torch.nn as nn

parser = argparse.ArgumentParser()
parser.add_argument("--seed", type=int, default=0)
opts = parser.parse_args()
gen = torch.Generator().manual_seed(opts.seed)
torch.manual_seed(opts.seed)


def make_sets(n, max_size=24):
    """Points of a noisy ellipse; predict the two radii from the unordered cloud."""
    sizes = torch.randint(10, max_size + 1, (n,), generator=gen)
    mask = torch.arange(max_size)[None] < sizes[:, None]
    radii = torch.rand(n, 2, generator=gen) * 1.5 + 0.5
    angle = torch.rand(n, max_size, generator=gen) * 6.2832
    pts = torch.stack([angle.cos(), angle.sin()], -1) * radii[:, None]
    pts = pts + 0.05 * torch.randn(pts.shape, generator=gen)
    return pts.masked_fill(~mask[..., None], 0.0), mask, radii


class DeepSet(nn.Module):
    def __init__(self, dim_in=2, dim_out=2, hidden=64):
        super().__init__()
        self.phi = nn.Sequential(nn.Linear(dim_in, hidden), nn.ELU(), nn.Linear(hidden, hidden), nn.ELU())
        self.rho = nn.Sequential(nn.Linear(2 * hidden, hidden), nn.ELU(), nn.Linear(hidden, dim_out))

    def forward(self, x, mask):
        h = self.phi(x)
        m = mask[..., None]
        mean = (h * m).sum(1) / m.sum(1)
        peak = h.masked_fill(~m, -1e4).max(1).values
        return self.rho(torch.cat([mean, peak], -1))


train_x, train_m, train_y = make_sets(4000)
test_x, test_m, test_y = make_sets(800)
y_mean, y_std = train_y.mean(0), train_y.std(0)

model = DeepSet()
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
scheduler = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer, factor=0.5, patience=1)
loss_fn = nn.SmoothL1Loss()

for epoch in range(12):
    model.train()
    losses = []
    for idx in torch.randperm(len(train_x)).split(64):
        pred = model(train_x[idx], train_m[idx])
        loss = loss_fn(pred, (train_y[idx] - y_mean) / y_std)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    model.eval()
    with torch.no_grad():
        out = model(test_x, test_m)
        val = loss_fn(out, (test_y - y_mean) / y_std).item()
    scheduler.step(val)
    print(f"epoch {epoch:2d} train {sum(losses) / len(losses):.4f} val {val:.4f}")

with torch.no_grad():
    order = torch.randperm(test_x.size(1))
    assert torch.allclose(model(test_x[:, order], test_m[:, order]), out, atol=1e-4)
    mae = (out * y_std + y_mean - test_y).abs().mean().item()
print(f"metric: {mae:.4f}")
