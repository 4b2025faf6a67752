"""“The capital has moved.” One fact of an associative memory is rewritten, and no other."""

from __future__ import annotations

import plotly.graph_objects as go
import torch
from torch import nn

import nethook
from nethook import edits, interp

countries = ["France", "Italy", "Spain", "Japan", "Egypt"]
capitals = ["Paris", "Rome", "Madrid", "Tokyo", "Cairo"]
torch.manual_seed(0)
keys = torch.randn(5, 32, dtype=torch.double)
values = torch.linalg.qr(torch.randn(32, 32, dtype=torch.double)).Q[:5]
memory = nn.Linear(32, 32, bias=False).double()
model = nn.Sequential(memory)
with torch.no_grad():  # W K = V
    memory.weight.copy_(values.T @ torch.linalg.pinv(keys).T)


def scores() -> torch.Tensor:
    """How well each capital (a column) fits what the memory says of a country (a row)."""
    with torch.no_grad():
        said: torch.Tensor = model(keys) @ values.T
    return said


def asked() -> list[str]:
    """What the memory says of every country."""
    return [capitals[int(row.argmax())] for row in scores()]


print("before:", *asked())
known = scores()
background = keys.T @ keys / 5 + 1e-3 * torch.eye(32, dtype=torch.double)
fact = interp.rewrite(
    memory, keys=keys[0], values=values[2], covariance=background, model=model
)  # France -> Madrid
with nethook.edit(model, params={"0.weight": fact}):
    print("inside:", *asked())
    moved = (model(keys) - values)[1:].norm() / values[1:].norm()
    print(f"the other facts have moved by {moved:.1%}")
    change = scores() - known
figure = go.Figure(
    go.Heatmap(
        z=change.tolist(), x=capitals, y=countries, zmid=0, colorscale="RdBu_r",
        text=[[f"{number:+.2f}" for number in row] for row in change.tolist()],
        texttemplate="%{text}",
    ),
    {"title": "What the rewrite changed", "yaxis": {"autorange": "reversed"}},
)  # fmt: skip
figure.write_html("rewritten.html")
print("changed most:", countries[int(change.abs().sum(1).argmax())])
print("after: ", *asked())
edits.save("moved.json", params={"0.weight": fact})
with nethook.edit(model, **edits.load("moved.json")):
    print("from its file:", asked()[0])
