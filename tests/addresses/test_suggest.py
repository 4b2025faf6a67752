"""What a person may have meant."""

from __future__ import annotations

import fnmatch

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nethook.addresses.suggest import close_names, closest, hint, listing

NAMES = ["", "conv1", "layer1", "layer1.0", "layer1.0.conv1", "layer1.0.conv2", "fc", "a*b"]


def said(pattern: str, names: list[str] = NAMES) -> str:
    def matched(other: str) -> list[str]:
        assert other == f"**.{pattern}"
        return [name for name in names if fnmatch.fnmatchcase(f".{name}", f"*.{pattern}")]

    return hint(pattern, names, kind="module", matched=matched)


def test_names_that_end_in_it_come_first_then_those_spelt_alike():
    assert close_names("conv2", NAMES)[:2] == ["layer1.0.conv2", "conv1"]
    assert close_names("cnov1", NAMES)[0] == "conv1"
    assert close_names("layer2.0.conv1", NAMES)[0] == "layer1.0.conv1"
    assert close_names("xyz", NAMES) == []
    assert close_names("x.y.conv2", NAMES)[0] == "layer1.0.conv2"  # the last segment counts too


@given(st.text("ab.1", max_size=5), st.lists(st.text("ab.1", max_size=5), unique=True))
def test_what_is_close_is_short_and_among_the_names(name, names):
    close = close_names(name, names)
    assert len(close) <= 4
    assert len(set(close)) == len(close)
    assert set(close) <= set(names)


@pytest.mark.parametrize(
    ("pattern", "text"),
    [
        ("conv[2]", "Did you mean '**.conv[2]'? It matches 'layer1.0.conv2'."),
        ("conv2", "Did you mean '**.conv2'? It matches 'layer1.0.conv2'."),
        ("fcc", "Closest: 'fc'."),
        ("**.fcc", "Closest: 'fc'."),
        ("a*c", "Closest: 'a\\\\*b'."),  # as it must be typed
        (r"a\*c", "Closest: 'a\\\\*b'."),
        ("a*b", "There is a module of that very name: write 'a\\\\*b'."),
        ("zzz", "The model's modules: '', 'conv1', 'layer1', 'layer1.0' and 4 more."),
    ],
)
def test_the_sentence_says_what_to_type(pattern, text):
    assert said(pattern) == text


def test_a_model_of_one_module_has_nothing_to_suggest():
    assert said("fc", [""]) == "The model has no modules below its root."
    assert closest("fc", [], kind="parameter") == "The model has no parameters below its root."


def test_a_listing_is_short_and_counts_the_rest():
    assert listing([]) == ""
    assert listing("ab") == "'a', 'b'"
    assert listing("abcd") == "'a', 'b', 'c', 'd'"
    assert listing("abcdef") == "'a', 'b', 'c', 'd' and 2 more"
