"""“The explanations do not sum up”: DeepLIFT's idea at every operation makes them do so.

A small transformer with functional activations, residuals, layer norm and attention. One gradient
times the input misses most of the change from baseline to input. Integrated gradients need many
gradients of the whole model. `op_lift` integrates every operation by itself, between its two
inputs, and needs two forwards and one backward.
"""

import tempfile
from pathlib import Path

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from nethook import interp


class Block(nn.Module):
    """Attention and an MLP, written with functions."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.one, self.two = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 2 * width), nn.Linear(2 * width, width)

    def forward(self, x: Tensor) -> Tensor:
        """One block, with its residuals."""
        q, k, v = (
            part.unflatten(2, (self.heads, -1)).transpose(1, 2)
            for part in self.qkv(self.one(x)).chunk(3, -1)
        )
        x = x + self.out(F.scaled_dot_product_attention(q, k, v).transpose(1, 2).flatten(2))
        out: Tensor = x + self.down(F.gelu(self.up(self.two(x))))
        return out


torch.manual_seed(0)
model = nn.Sequential(*[Block(16, 4) for _ in range(3)], nn.Flatten(), nn.Linear(96, 3)).double()
x, baseline = torch.randn(2, 4, 6, 16, dtype=torch.float64)

once = interp.input_x_gradient(model, x, target=0)
lift = interp.op_lift(model, x, target=0, baseline=baseline)
full = interp.integrated_gradients(model, x, target=0, baseline=baseline, tol=1e-8)
change = float((full.score - full.start).abs().mean())  # type: ignore[operator]
print(f"to explain: a change of {change:.2f}")
print(f"input x gradient misses {float(once.delta.abs().max()):.1f}")  # type: ignore[union-attr]
print(f"op_lift misses {float(lift.delta.abs().max()):.0e}, in {lift.runs} forwards")  # type: ignore[union-attr]
rough = interp.integrated_gradients(model, x, target=0, baseline=baseline, steps=4, tol=None)
print(f"4 steps of integrated gradients miss {float(rough.delta.abs().max()):.0e}")  # type: ignore[union-attr]
both = torch.stack([lift.summed.flatten(), full.summed.flatten()])
print(f"per token the two agree: correlation {float(torch.corrcoef(both)[0, 1]):.2f}")
with tempfile.TemporaryDirectory() as folder:
    lift.figure([f"token {n}" for n in range(6)]).write_html(Path(folder) / "lift.html")
    print("written:", [path.name for path in Path(folder).iterdir()])
