"""Rules for the scale of a weight, by name."""

from __future__ import annotations

import math

import pytest
import torch
from torch import nn

from nethook.errors import OptionError
from nethook.init.dataflow.fans import Layout
from nethook.init.plans.methods import find_method

LINEAR = Layout("linear")


@pytest.mark.parametrize(
    ("name", "torchs"),
    [
        ("he", nn.init.kaiming_normal_),
        ("he_uniform", nn.init.kaiming_uniform_),
        ("glorot", nn.init.xavier_uniform_),
        ("glorot_normal", nn.init.xavier_normal_),
    ],
)
def test_the_std_is_that_of_torch(name: str, torchs: object) -> None:
    torch.manual_seed(0)
    weight = torch.empty(700, 300)
    torchs(weight)  # type: ignore[operator]
    gain = math.sqrt(2) if name.startswith("he") else 1.0  # torch's for leaky_relu of slope 0
    std = find_method(name).std(gain, (300.0, 700.0))
    assert std == pytest.approx(float(weight.std()), rel=0.01)


@pytest.mark.parametrize(
    ("alias", "name"),
    [
        ("kaiming_normal_", "he"),
        ("Kaiming-Uniform", "he_uniform"),
        ("xavier", "glorot"),
        ("LECUN", "lecun"),
        ("delta-orthogonal", "delta_orthogonal"),
        ("auto", "auto"),
    ],
)
def test_spellings(alias: str, name: str) -> None:
    assert find_method(alias).name == name


def test_a_name_that_does_not_exist() -> None:
    with pytest.raises(OptionError, match=r"got 'glorott'\. Closest: 'glorot'"):
        find_method("glorott")
    with pytest.raises(OptionError, match="'auto', 'he'"):
        find_method("zzz")


def test_a_weight_without_inputs_has_no_scale() -> None:
    assert find_method("he").std(1.0, (0.0, 4.0)) == 0.0


def test_orthogonal_only_where_it_is_quick() -> None:
    auto = find_method("auto")
    assert auto.drawn_from((4096, 2048), LINEAR) == "orthogonal"
    assert auto.drawn_from((4096, 2049), LINEAR) == "normal"
    packed = Layout("linear", blocks=3)
    assert auto.drawn_from((6144, 6144), packed) == "orthogonal"  # three of 2048
    assert find_method("orthogonal").drawn_from((4096, 4096), LINEAR) == "orthogonal"


def test_rows_that_are_looked_up_are_drawn_one_by_one() -> None:
    assert find_method("orthogonal").drawn_from((10, 4), Layout("lookup")) == "normal"
    assert find_method("he_uniform").drawn_from((10, 4), Layout("lookup")) == "uniform"
