"""What is remembered of a model is used only while the model still looks like that."""

from __future__ import annotations

import gc
import re
import weakref

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn
from torch.nn.utils import parametrizations

from nethook.addresses import tree_cache
from nethook.addresses.tree import Tree
from nethook.addresses.tree_cache import recall


def network() -> nn.Sequential:
    return nn.Sequential(
        nn.Linear(3, 3), nn.Sequential(nn.ReLU(), nn.Sequential(nn.Tanh())), nn.Linear(3, 3)
    )


def walked_anew(model: nn.Module) -> list[tuple[str, nn.Module]]:
    """What torch says: every name of every module, the first one of each."""
    return list(model.named_modules())


def walked(model: nn.Module) -> list[tuple[str, nn.Module]]:
    tree = Tree(model)
    return list(zip(tree.addresses, tree.modules, strict=True))


def test_a_second_walk_is_taken_from_memory_and_equal():
    model = network()
    assert recall(model) is None
    first = Tree(model)
    known = recall(model)
    assert known is not None
    assert known[0].addresses is first.addresses
    assert walked(model) == walked_anew(model)


def _replace(model: nn.Module) -> None:
    model[1][0] = nn.Linear(3, 3)


def _replace_deep_inside(model: nn.Module) -> None:
    model[1][1][0] = nn.Sequential(nn.GELU())


def _add_below_a_leaf(model: nn.Module) -> None:
    model[0].add_module("lora", nn.Linear(3, 3))


def _remove(model: nn.Module) -> None:
    del model[2]


def _rename(model: nn.Module) -> None:
    model._modules["last"] = model._modules.pop("2")


def _reorder(model: nn.Module) -> None:
    model._modules["0"] = model._modules.pop("0")


def _share(model: nn.Module) -> None:
    model[2] = model[0]


def _none(model: nn.Module) -> None:
    model._modules["0"] = None


def _none_inside(model: nn.Module) -> None:
    model[1]._modules["1"] = None


def _parametrize(model: nn.Module) -> None:
    parametrizations.weight_norm(model[0])


def _wrap(model: nn.Module) -> None:
    model[1] = nn.DataParallel(model[1])


def _script(model: nn.Module) -> None:
    model[1] = torch.jit.script(model[1])


def _cycle(model: nn.Module) -> None:
    model[1][1]._modules["0"] = model


CHANGES = [
    _replace, _replace_deep_inside, _add_below_a_leaf, _remove, _rename, _reorder, _share, _none,
    _none_inside, _parametrize, _wrap, _cycle, _script,
]  # fmt: skip


@pytest.mark.filterwarnings("ignore:`torch.jit")  # deprecated, from 2.10 on
@pytest.mark.parametrize("change", CHANGES, ids=lambda each: each.__name__)
def test_a_model_that_changed_is_walked_again(change):
    model, fresh = network(), network()
    Tree(model)
    change(model)
    change(fresh)  # never walked before: nothing is remembered of it
    now, wanted = Tree(model), Tree(fresh)
    assert now.addresses == wanted.addresses
    kinds = [[type(each).__name__ for each in tree.modules] for tree in (now, wanted)]
    assert kinds[0] == kinds[1]  # by name: torch makes a class for each parametrised layer
    ours, theirs = now.sites, wanted.sites
    assert [site.names for site in ours] == [site.names for site in theirs]
    assert [site.long for site in ours] == [site.long for site in theirs]
    assert now.leaves()[-1].address == wanted.leaves()[-1].address


def test_the_same_names_elsewhere_are_another_model():
    model = nn.Sequential(nn.Sequential(nn.ReLU()), nn.Sequential())
    Tree(model)
    model[1].add_module("0", model[0]._modules.pop("0"))
    assert Tree(model).addresses == ["", "0", "1", "1.0"]


def test_a_module_of_the_same_place_in_memory_is_not_mistaken():
    model = network()
    Tree(model)
    for _ in range(20):  # one that is freed may be followed by one at its address
        model[2] = nn.Linear(3, 3)
        assert walked(model) == walked_anew(model)


def test_nothing_is_kept_alive():
    model = network()
    inner = weakref.ref(model[1][0])
    Tree(model)
    key = id(model)
    assert key in tree_cache._remembered
    del model
    gc.collect()
    assert inner() is None
    assert key not in tree_cache._remembered


def test_a_model_without_a_hash():
    class Odd(nn.Sequential):
        def __eq__(self, other: object) -> bool:
            raise AssertionError("asked")

    model = Odd(nn.ReLU())
    for _ in range(2):
        assert [site.address for site in Tree(model).sites] == ["", "0"]


def test_patterns_are_remembered_and_not_for_ever():
    model = network()
    for number in range(200):
        found = [name for _, name in Tree(model).match(re.compile(f"{number}"))]
        assert found == [str(number)][: number < 3]
    known = recall(model)
    assert known is not None
    assert len(known[0]._known) <= 64
    assert [name for _, name in Tree(model).match(re.compile(r"1\..*"))] == ["1.0", "1.1", "1.1.0"]


@settings(max_examples=60, deadline=None)
@given(st.lists(st.sampled_from([*CHANGES[:6], _share]), max_size=4), st.randoms())
def test_any_run_of_changes(changes, random):
    model = network()
    for change in changes:
        if random.random() < 0.7:
            Tree(model)
        try:
            change(model)
        except (IndexError, KeyError, TypeError, AttributeError):
            continue  # an earlier change took away what this one changes
        assert walked(model) == walked_anew(model)
        assert {id(p.tensor) for p in Tree(model).parameters().sites} == {
            id(p) for p in (*model.parameters(), *model.buffers())
        }
