"""“Where does the network know it, and what if it did not?” Probed with a control, then erased."""

from __future__ import annotations

import torch
from torch import nn

import nethook
from nethook import edits, interp

torch.manual_seed(0)
x = torch.randn(600, 8)
colour = (x[:, 0] + x[:, 1] > 0).long()  # what the network is asked for
shape = (x[:, 2] > 0).long()  # what it is not asked for
model = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 16), nn.ReLU(), nn.Linear(16, 2))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
for _ in range(60):
    loss = nn.functional.cross_entropy(model(x), colour)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()

sites = {name: nethook.features(model, x, at=name) for name in ("0", "2")}
for what, labels in (("colour", colour), ("shape", shape)):
    probes = interp.probe(sites, labels, kind="ridge")
    for site, probe in probes.items():
        print(
            f"{what} at {site}: {probe.score:.2f} "
            f"(control {probe.control:.2f}, baseline {probe.baseline:.2f})"
        )
figure = probes.figure()

gone = interp.erase(sites["0"], shape)
after = interp.probe(gone(sites["0"]), shape, kind="ridge")
print(f"shape at 0, erased: {after.score:.2f} (baseline {after.baseline:.2f})")
edits.save("no_shape.json", outputs={"0": gone})
with nethook.edit(model, **edits.load("no_shape.json")):
    right = (model(x).argmax(1) == colour).double().mean()
print(f"colour is still answered: {right:.2f}")
