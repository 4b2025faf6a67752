"""How an autograd graph is drawn."""

import io

import torch
from torch import nn

import nethook


class Block(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.up, self.down = nn.Linear(4, 8), nn.Linear(8, 4)

    def forward(self, x):
        return x + self.down(torch.relu(self.up(x)))


def test_branches_that_meet_again_go_on_where_they_parted() -> None:
    model = nn.Sequential(nn.Linear(3, 4), Block(), nn.Linear(4, 2))
    with nethook.trace(model, "**", nodes=True) as tape:
        out = model(torch.randn(5, 3))
    graph = nethook.autograd_graph(out, tape=tape)
    assert repr(graph) == (
        "autograd graph: 10 nodes, 8 leaves\n"
        "node                      made    by      gradients to\n"
        "────────────────────────  ──────  ──────  ──────────────────────────\n"
        "AddmmBackward0 #0         (5, 2)  2       2.bias, 2.weight\n"
        "AddBackward0 #4           (5, 4)  1\n"
        "├─ (straight on)\n"
        "└─ AddmmBackward0 #5      (5, 4)  1.down  1.down.bias, 1.down.weight\n"
        "   ├─ ReluBackward0 #9    (5, 8)  1\n"
        "   └─ AddmmBackward0 #10  (5, 8)  1.up    1.up.bias, 1.up.weight\n"
        "AddmmBackward0 #14        (5, 4)  0       0.bias, 0.weight"
    )


def test_a_branch_that_never_meets_again_and_a_shared_node_are_drawn() -> None:
    a, b = (torch.ones(1, requires_grad=True) for _ in range(2))
    left = (a * 2).exp().sin()
    right = (b * 3).exp().cos()
    text = nethook.autograd_graph(left + right).tree()
    assert text.count("ExpBackward0") == 2
    shared = (a * 2).exp()
    one, other = shared.sin(), shared.cos()
    text = nethook.autograd_graph((one, other)).tree()
    assert text.splitlines()[-1].strip().startswith("└─ ↑ ExpBackward0 #")
    assert text.splitlines()[3].startswith("root 0")


def test_html_and_rich_say_the_same_nodes() -> None:
    from rich.console import Console

    model = nn.Sequential(nn.Linear(3, 4), Block())
    graph = nethook.autograd_graph(model(torch.randn(5, 3)), model=model)
    console = Console(width=200, file=io.StringIO(), record=True)
    console.print(graph)
    printed = console.export_text()
    for node in graph:
        if node.leaf is None and node.name != "TBackward0":
            assert f"{node.name} #{node.index}" in printed
            assert f"{node.name} #{node.index}" in graph._repr_html_()
    assert "1.up.weight" in printed
