"""Addresses and patterns of operations."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

from nethook.addresses.glob import escape
from nethook.addresses.op_addresses import OpPattern, is_op_pattern, op_address, split_patterns
from nethook.addresses.tree import Tree
from nethook.errors import NoSuchSiteError, PatternError


class Named(nn.Module):
    """A module whose children have the names given."""

    def __init__(self, *names: str) -> None:
        super().__init__()
        for name in names:
            self.add_module(name, nn.ReLU())


def test_an_address_is_the_modules_with_its_signs_escaped() -> None:
    assert op_address("", "add", 0) == "/add#0"
    assert op_address("layer1.0", "relu", 12) == "layer1.0/relu#12"
    assert op_address("a/b#c*", "relu", 0) == r"a\/b\#c\*/relu#0"


@pytest.mark.parametrize(
    ("text", "name", "k", "expected"),
    [
        ("conv1/relu#0", "relu", 0, True),
        ("conv1/relu#0", "relu", 1, False),
        ("conv1/relu#0", "relu6", 0, False),
        ("conv1/relu#01", "relu", 1, True),
        ("/relu", "relu", 7, True),
        ("/relu", "prelu", 0, False),
        ("/*", "add", 3, True),
        ("/**", "add", 3, True),
        ("/*relu", "prelu", 0, True),
        ("/re?u#*", "relu", 11, True),
        ("/{add,sub}#[01]", "sub", 1, True),
        ("/{add,sub}#[01]", "sub", 2, False),
        ("/{add,sub}#[01]", "mul", 1, False),
        ("/*#1", "mul", 1, True),
        ("/*#1", "mul", 10, False),
        ("/scaled_dot_product_attention", "scaled_dot_product_attention", 0, True),
    ],
)
def test_which_operations_a_pattern_means(text: str, name: str, k: int, expected: bool) -> None:
    assert OpPattern(text).matches(name, k) is expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("/add", [""]),
        ("fc/add", ["fc"]),
        ("layer*/add#1", ["layer1", "layer2"]),
        ("**/add", ["", "fc", "layer1", "layer1.act", "layer2", "layer2.act"]),
        ("**.act/add", ["layer1.act", "layer2.act"]),
        ("layer1.**/add", ["layer1.act"]),
        ("*/add", ["fc", "layer1", "layer2"]),
    ],
)
def test_which_modules_a_pattern_means(text: str, expected: list[str]) -> None:
    model = Named("fc", "layer1", "layer2")
    model.layer1.add_module("act", nn.ReLU())
    model.layer2.add_module("act", nn.ReLU())
    tree, pattern = Tree(model), OpPattern(text)
    assert [site.address for site in pattern.sites(tree)] == expected
    meant = [site.address for site in tree.sites if pattern.means_module(site.names)]
    assert meant == expected


def test_a_pattern_without_a_module_is_an_error_that_names_what_is_close() -> None:
    with pytest.raises(NoSuchSiteError, match=r"no module matches 'fc1'. Closest: 'fc'"):
        OpPattern("fc1/add").sites(Tree(Named("fc")))


@pytest.mark.parametrize(
    "text", ["/", "fc/", "fc/#0", "fc/add#", "fc/add#x", "fc/a/b", "a/b/c#0", "/add#-1", "/add#1.0"]
)
def test_what_is_no_address_is_said_to_be_none(text: str) -> None:
    with pytest.raises(PatternError, match=r"is not the address of an operation: that is module/o"):
        OpPattern(text)


def test_what_one_pattern_means_exactly() -> None:
    assert OpPattern("fc/add#3").one == ("add", 3)
    assert OpPattern("fc/add").one is None
    assert OpPattern("fc/a*#3").one is None
    assert OpPattern("fc/add#*").one is None
    assert OpPattern("fc/add").name == "add"
    assert OpPattern("fc/a*").name is None
    assert OpPattern("fc/add#2").number == 2
    assert OpPattern("fc/add").number is None
    assert OpPattern(r"a\/b/add").only_module == "a/b"
    assert OpPattern("a*/add").only_module is None


def test_patterns_of_both_kinds_are_told_apart() -> None:
    modules, ops = split_patterns(["fc", [nn.ReLU, "/add"], r"a\/b", "layer*/relu#0"])
    assert modules == ["fc", nn.ReLU, r"a\/b"]
    assert [each.text for each in ops] == ["/add", "layer*/relu#0"]
    assert is_op_pattern("/add")
    assert not is_op_pattern(r"a\/b")
    assert not is_op_pattern(nn.ReLU)


names = st.text(st.characters(exclude_characters=".", codec="utf-8"), min_size=1, max_size=6)


@given(module=names, k=st.integers(0, 1000), others=st.lists(names, max_size=3))
def test_an_address_is_a_pattern_that_means_only_itself(
    module: str, k: int, others: list[str]
) -> None:
    pattern = OpPattern(op_address(module, "add", k))
    assert pattern.one == ("add", k)
    assert pattern.module == escape(module)
    assert pattern.means_module([module])
    assert pattern.means_module(others) is (module in others)
    assert pattern.matches("add", k)
    assert not pattern.matches("add", k + 1)
