"""The zoo is fit for its purpose: its runs repeat bit by bit, and the comparison sees a change.

Nothing here needs nethook. Without these, a green `test_zoo.py` would mean little.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from tests.zoo import EXHIBITS, Bomb, Boom, Exhibit, assert_same, differences, observe, snapshot
from tests.zoo.marks import every_exhibit
from tests.zoo.table import README, readme


@every_exhibit
def test_two_bare_runs_are_bit_identical(exhibit: Exhibit) -> None:
    assert_same(observe(exhibit), observe(exhibit), "bare runs")


@every_exhibit
def test_differentiable_exhibits_have_gradients(exhibit: Exhibit) -> None:
    # Otherwise the comparison of gradients would compare nothing.
    facts = observe(exhibit).facts
    gradients = [path for path in facts if path.endswith(".grad") and facts[path] != _NONE]
    if exhibit.differentiable:
        assert gradients


_NONE = snapshot(None)[""]


@every_exhibit
def test_a_bomb_goes_off_in_every_exhibit_that_calls_modules(exhibit: Exhibit) -> None:
    counter = Bomb(at=-1)
    observe(exhibit, bomb=counter)
    assert counter.calls > 0, "no module call: an exception cannot be thrown here"
    bomb = Bomb(at=counter.calls - 1)
    observe(exhibit, bomb=bomb)
    assert isinstance(bomb.exploded, Boom)


def test_there_are_many_mechanisms_and_each_is_named_once() -> None:
    assert len(EXHIBITS) >= 45
    assert [name for name, n in Counter(e.name for e in EXHIBITS).items() if n > 1] == []
    assert [text for text, n in Counter(e.mechanism for e in EXHIBITS).items() if n > 1] == []


def test_the_table_is_up_to_date() -> None:
    assert README.read_text(encoding="utf-8") == readme(), "run `python -m tests.zoo`"


# --- the comparison can fail -----------------------------------------------------------------


def _exhibit(name: str) -> Exhibit:
    return next(item for item in EXHIBITS if item.name == name)


def _seen(exhibit: str, around: Any) -> list[str]:
    bare = observe(_exhibit(exhibit))
    return differences(bare.facts, observe(_exhibit(exhibit), around=around).facts)


@contextmanager
def _adding(model: nn.Module) -> Iterator[None]:
    first = next(model.children())
    handle = first.register_forward_hook(lambda m, a, out: out + 1e-7)
    yield
    handle.remove()


def test_a_change_of_one_bit_is_seen() -> None:
    lines = _seen("conv_inplace_relu", _adding)
    assert any(line.startswith("['output']: bits") for line in lines)
    assert any(".grad" in line for line in lines)


@contextmanager
def _drawing(model: nn.Module) -> Iterator[None]:
    torch.rand(1)
    yield


def test_a_random_number_is_seen() -> None:
    assert any(line.startswith("random state of torch") for line in _seen("frozen", _drawing))


@contextmanager
def _leaving_a_hook(model: nn.Module) -> Iterator[None]:
    next(model.children()).register_forward_hook(lambda m, a, out: None)
    yield


def test_a_hook_left_behind_is_seen() -> None:
    assert any("_forward_hooks" in line for line in _seen("frozen_and_thawed", _leaving_a_hook))


@contextmanager
def _leaving_a_tensor_hook(model: nn.Module) -> Iterator[None]:
    next(model.parameters()).register_hook(lambda g: None)
    yield


def test_a_tensor_hook_left_behind_is_seen() -> None:
    assert any(
        ": hooks:" in line for line in _seen("linear_view_inplace_relu", _leaving_a_tensor_hook)
    )


@contextmanager
def _adding_a_node(model: nn.Module) -> Iterator[None]:
    handle = model.register_forward_hook(lambda m, a, out: out.view_as(out))
    yield
    handle.remove()


def test_a_node_in_the_graph_is_seen() -> None:
    lines = _seen("conv_inplace_relu", _adding_a_node)
    assert any(line.startswith("graph") for line in lines)
    assert any("node" in line for line in lines)
    assert not any("bits" in line for line in lines)


@contextmanager
def _leaving_an_attribute(model: nn.Module) -> Iterator[None]:
    vars(model)["_nethook"] = None
    yield


def test_an_attribute_left_behind_is_seen() -> None:
    assert any("attributes" in line for line in _seen("frozen", _leaving_an_attribute))


@contextmanager
def _hooking_by_hand(model: nn.Module) -> Iterator[None]:
    handles = [m.register_forward_hook(lambda *_: None) for m in model.modules()]
    yield
    for handle in handles:
        handle.remove()


def test_hooks_do_switch_off_the_fused_path() -> None:
    # The reason why that exhibit is here: with plain hooks its last bits change.
    assert any("bits" in line for line in _seen("encoder_fast_path_masked", _hooking_by_hand))


# --- the comparison by itself -----------------------------------------------------------------


def _differ(left: object, right: object) -> bool:
    return bool(differences(snapshot(left), snapshot(right)))


class Sub(Tensor):
    pass


@pytest.mark.parametrize(
    "make",
    [
        lambda: torch.tensor([1.0, float("nan")]),
        lambda: torch.zeros(0, 3),
        lambda: torch.tensor(1 + 2j).conj(),
        lambda: torch.eye(2).to_sparse(),
        lambda: torch.arange(6).view(2, 3).mT,
        lambda: torch.ones(1, 1).expand(3, 2),
        lambda: torch.ones(2).as_subclass(Sub),
        lambda: torch.empty(2, device="meta"),
        lambda: torch.ones(3, dtype=torch.bfloat16),
        lambda: {"a": [torch.ones(1), None, (1, 2.0)]},
    ],
)
def test_equal_values_are_equal(make: Any) -> None:
    assert not _differ(make(), make())


def test_unequal_values_are_not() -> None:
    one = torch.ones(2, 2)
    others: list[object] = [
        torch.ones(2, 2).double(),
        torch.ones(4),
        torch.tensor([[1.0, 1.0], [1.0, 1.0000001]]),
        torch.ones(2, 4)[:, ::2],
        torch.ones(2, 2).requires_grad_(),
        torch.ones(2, 2).as_subclass(Sub),
        torch.ones(2, 2).to_sparse(),
        nn.Parameter(torch.ones(2, 2)),
        torch.ones(2, 2).numpy(),
        (torch.ones(2, 2),),
    ]
    assert all(_differ(one, other) for other in others)
    assert _differ(torch.tensor(0.0), torch.tensor(-0.0))
    assert _differ([1], (1,))
    assert _differ([1], [True])
    assert _differ(0.0, -0.0)
    assert _differ({"a": 1, "b": 2}, {"a": 1})
    assert _differ([one, one], [one, one.clone()])  # the same object twice, or two alike
    assert _differ([one, one.view(4)], [one, one.clone().view(4)])  # shared memory, or not
