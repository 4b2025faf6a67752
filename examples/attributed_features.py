"""“Which features matter?”: a table, with intervals, and what happens without a named baseline.

A network predicts the progression of diabetes from ten features. Integrated gradients, Shapley
values and covering one feature at a time are compared with what a linear model says in closed form.
"""

import tempfile
from pathlib import Path

import torch
from sklearn.datasets import load_diabetes
from torch import nn

from nethook import interp
from nethook.errors import OptionError

data = load_diabetes()
names = list(data.feature_names)
x = torch.tensor(data.data, dtype=torch.float32) * len(data.data) ** 0.5  # of variance one
y = torch.tensor(data.target, dtype=torch.float32)
y = (y - y.mean()) / y.std()

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(10, 16), nn.GELU(), nn.Linear(16, 1))
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2, weight_decay=0.1)
for _ in range(150):
    loss = nn.functional.mse_loss(model(x)[:, 0], y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
model.eval()

try:
    interp.integrated_gradients(model, x)
except OptionError as error:
    print(str(error).partition(",")[0])

mean = x.mean(0)
patient = x[:64]
found = {
    "integrated gradients": interp.integrated_gradients(model, patient, baseline=mean),
    "Shapley values": interp.shapley(model, patient, baseline=mean, samples=20),
    "occlusion": interp.occlusion(model, patient, baseline=mean),
}
for name, result in found.items():
    size = result.values.abs().mean(0)
    best = ", ".join(names[i] for i in size.argsort(descending=True)[:3])
    print(f"{name}: {best}")
shapley = found["Shapley values"]
together = torch.stack([result.values.flatten() for result in found.values()])
print(f"agreement of the three: {float(torch.corrcoef(together).min()):.2f}")
print(f"each row adds up to its prediction: {float(shapley.delta.abs().max()) < 1e-5}")  # type: ignore[union-attr]

linear = nn.Linear(10, 1)
closed = linear.weight * (patient - mean)
one = interp.integrated_gradients(linear, patient, baseline=mean)
print(f"a linear model in closed form: {torch.allclose(one.values, closed, atol=1e-5)}")
with tempfile.TemporaryDirectory() as folder:
    figure = found["integrated gradients"].figure(names, row=0)
    figure.write_html(Path(folder) / "one patient.html")
    found["integrated gradients"].figure(names).write_html(Path(folder) / "all.html")
    print("written:", ", ".join(sorted(path.name for path in Path(folder).iterdir())))
