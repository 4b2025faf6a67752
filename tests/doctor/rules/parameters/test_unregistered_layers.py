"""The rule `unregistered-layers`: when it reports, and when it does not."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from tests.doctor.ill import graph, loose, stuck
from tests.doctor.small_runs import Net, codes, train


def test_the_finding_has_the_container_and_both_lines() -> None:
    (finding,) = graph(stuck(), others=[loose()]).found("unregistered-layers")
    assert finding.message.startswith("`blocks` is a Python list: the 4 parameters in it (Linear)")
    assert "512 weights" in finding.message
    assert "nn.ModuleList" in finding.fix
    assert finding.sites == ("blocks",)
    assert finding.lines == ("net.py:7", "train.py:5")


@pytest.mark.parametrize(
    ("facts", "instead"),
    [
        ({"how": "dict"}, "nn.ModuleDict"),
        ({"how": "function"}, "an attribute"),
        ({"kind": "Parameter"}, "nn.ParameterList"),
        ({"kind": "Parameter", "how": "dict"}, "nn.ParameterDict"),
    ],
)
def test_the_fix_names_what_to_use_instead(facts: dict[str, str], instead: str) -> None:
    (finding,) = graph(stuck(), others=[loose(**facts)]).found("unregistered-layers")
    assert instead in finding.fix


def test_two_containers_are_one_finding() -> None:
    others = [loose(), loose(where="heads", how="dict", parameters=2)]
    (finding,) = graph(stuck(), others=others).found("unregistered-layers")
    assert finding.message.startswith("`blocks` and `heads` are Python dict and lists: the 6 para")


class Hidden(Net):
    """A layer in a container, as `keep` makes it."""

    def __init__(self, keep: object) -> None:
        super().__init__()
        self.kept = keep

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        kept = self.kept
        layer = kept["a"][0] if isinstance(kept, dict) else kept[0]  # type: ignore[index]
        return self.last(torch.tanh(layer(self.first(x))))


def layer() -> nn.Linear:
    return nn.Linear(6, 6)


@pytest.mark.parametrize("keep", [lambda: [layer()], lambda: (layer(),), lambda: {"a": [layer()]}])
def test_layers_in_containers(tmp_path: Path, keep: object) -> None:
    model = Hidden(keep())  # type: ignore[operator]
    assert codes(tmp_path, model, train)[0] == "unregistered-layers"


def test_hard_negatives(tmp_path: Path) -> None:
    # In the optimizer by hand.
    model = Hidden([layer()])
    both = [*model.parameters(), *model.kept[0].parameters()]  # type: ignore[index]
    optimizer = torch.optim.Adam(both, 0.01)
    assert "unregistered-layers" not in codes(tmp_path / "a", model, train, optimizer)

    # Registered, and in a list as well.
    inner = layer()
    model = Hidden([inner])
    model.inner = inner
    assert "unregistered-layers" not in codes(tmp_path / "b", model, train)

    # Frozen, and hidden from `state_dict` on purpose.
    model = Hidden([layer().requires_grad_(False)])
    assert "unregistered-layers" not in codes(tmp_path / "c", model, train)

    # A pretrained network in a list: a perceptual loss, a teacher.
    loaded = layer()
    model = Hidden([loaded])
    with_state = {name: torch.randn_like(value) for name, value in loaded.state_dict().items()}
    found = codes(tmp_path / "d", model, train, before=lambda: loaded.load_state_dict(with_state))
    assert "unregistered-layers" not in found

    # Moved by other code: an average of the weights.
    model = Hidden([layer()])

    def average() -> None:
        with torch.no_grad():
            for own in model.kept[0].parameters():  # type: ignore[index]
                own.mul_(0.99)

    assert "unregistered-layers" not in codes(tmp_path / "e", model, train, after=average)


def test_a_list_that_holds_no_layers_of_the_graph(tmp_path: Path) -> None:
    model = Net()
    model.history = [torch.zeros(3, requires_grad=True), nn.Linear(2, 2)]
    assert "unregistered-layers" not in codes(tmp_path, model, train)


def born(**facts: Any) -> Any:
    """A run whose graphs have parameters that were made for them."""
    usual = {"looks": 11, "parameters": 2, "elements": 24, "shapes": [[4, 5], [4]], "since": 0}
    return graph(stuck(), born={**usual, **facts})


def test_a_layer_that_is_made_in_the_forward() -> None:
    (finding,) = born().found("unregistered-layers")
    assert finding.severity == "error"
    assert "2 parameters in the graph of the loss ((4, 5), (4,)) are made anew" in finding.message
    assert not born(looks=2).found("unregistered-layers")
    assert not born(looks=5).found("unregistered-layers")  # in less than half of the graphs


def test_a_norm_that_is_made_in_the_forward_is_a_note() -> None:
    (finding,) = born(shapes=[[8], [8]]).found("unregistered-layers")
    assert finding.severity == "info"


class Born(Net):
    """Its middle layer is another one at every call."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.last(nn.Linear(6, 6)(torch.tanh(self.first(x))))


class Attacked(Net):
    """Adds a perturbation of its own to every batch, as adversarial training does."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        noise = nn.Parameter(torch.zeros_like(x))
        return super().forward(x + noise)


def test_layers_made_in_the_forward_of_a_training(tmp_path: Path) -> None:
    assert codes(tmp_path / "born", Born(), train)[0] == "unregistered-layers"
    assert "unregistered-layers" not in codes(tmp_path / "attacked", Attacked(), train)


def test_a_matrix_that_is_no_parameter_is_a_question() -> None:
    plain = [{"address": "memory.keys", "shape": [24, 64], "since": 0}]
    (finding,) = graph(stuck(), plain=plain).found("unregistered-layers")
    assert finding.severity == "info"
    assert finding.sites == ("memory.keys",)
    assert finding.message.startswith("`memory.keys` of random numbers ((24, 64)) is an attribute")
    assert "self.keys = nn.Parameter(...)" in finding.fix
    assert not graph(stuck(), plain=plain, looks=2).found("unregistered-layers")
