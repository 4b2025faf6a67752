"""Every kind of pattern, for modules and for parameters."""

from __future__ import annotations

import re

import pytest
import torch
from torch import nn

from nethook.addresses.glob import escape
from nethook.addresses.patterns import find_modules, find_parameters, flatten
from nethook.addresses.tree import Tree
from nethook.errors import NoSuchSiteError, PatternError
from tests.addresses.networks import ODD, Shared, Small, Tied, odd_names


def modules(model: nn.Module, *patterns: object) -> list[str]:
    return [name for _, (_, name) in sorted(find_modules(Tree(model), patterns).items())]


def parameters(model: nn.Module, *patterns: object) -> list[str]:
    tree = Tree(model)
    return [
        name for _, (_, name) in sorted(find_parameters(tree, tree.parameters(), patterns).items())
    ]


MODEL = Small()


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        ("fc1", ["fc1"]),
        ("", [""]),
        ("fc*", ["fc1", "fc2"]),
        ("**.0", ["block1.0", "block2.0"]),
        (re.compile(r"fc\d"), ["fc1", "fc2"]),
        (re.compile(r"BLOCK\d\.0", re.IGNORECASE), ["block1.0", "block2.0"]),
        (nn.Conv2d, ["block1.0", "block2.0"]),
        (nn.modules.conv._ConvNd, ["block1.0", "block2.0"]),
        (MODEL.fc2, ["fc2"]),
        (MODEL, [""]),
        (lambda name, module: isinstance(module, nn.Linear) and name != "fc1", ["fc2"]),
        (["fc1", [nn.ReLU, ("fc2",)]], ["block1.2", "block2.1", "fc1", "fc2"]),
        ({"fc2", "fc1"}, ["fc1", "fc2"]),
        ((f"fc{i}" for i in (2, 1)), ["fc1", "fc2"]),
        ([], []),
    ],
)
def test_the_modules_that_a_pattern_means(pattern, expected):
    assert modules(MODEL, pattern) == expected


FC = ["fc1.weight", "fc1.bias", "fc2.weight", "fc2.bias"]
NORM = [f"block1.1.{x}" for x in ("weight", "bias", "running_mean", "running_var")]
NORM.append("block1.1.num_batches_tracked")


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        ("fc1.bias", ["fc1.bias"]),
        ("steps", ["steps"]),
        ("fc*.bias", ["fc1.bias", "fc2.bias"]),
        ("**.running_*", ["block1.1.running_mean", "block1.1.running_var"]),
        (re.compile(r".*\.bias"), ["block1.0.bias", "block1.1.bias", "block2.0.bias", *FC[1::2]]),
        # What means a module means the parameters below it.
        ("fc1", ["fc1.weight", "fc1.bias"]),
        ("fc?", FC),
        (re.compile("fc."), FC),
        ("block1", ["block1.0.weight", "block1.0.bias", *NORM]),
        (MODEL.fc2, ["fc2.weight", "fc2.bias"]),
        (MODEL.block1, ["block1.0.weight", "block1.0.bias", *NORM]),
        (nn.Linear, FC),
        (nn.BatchNorm2d, NORM),
        # The class of the tensor itself counts as well; names and tensors go to a function.
        (nn.Parameter, [name for name, _ in MODEL.named_parameters()]),
        (lambda name, tensor: tensor.ndim == 0, ["steps", "block1.1.num_batches_tracked"]),
        (["steps", [MODEL.fc1]], ["steps", "fc1.weight", "fc1.bias"]),
        ("{scale,fc2}", ["scale", "fc2.weight", "fc2.bias"]),
    ],
)
def test_the_parameters_that_a_pattern_means(pattern, expected):
    assert parameters(MODEL, pattern) == expected


def test_the_root_means_all_parameters_and_a_class_those_below_its_modules():
    everything = parameters(MODEL, torch.Tensor)
    assert parameters(MODEL, "") == parameters(MODEL, MODEL) == everything
    assert parameters(MODEL, nn.Module) == everything
    assert parameters(MODEL, "*") == everything  # of each child, and what the root has itself
    blocks = [name for name in everything if name.startswith("block")]
    assert parameters(MODEL, nn.Sequential) == blocks


# A module or a weight of several names.


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        ("encoder.0", ["encoder.0"]),
        ("decoder.0", ["decoder.0"]),
        ("extra.inner", ["extra.inner"]),
        ("decoder.*", ["decoder.0", "decoder.1"]),
        (re.compile(r"d.*\.0"), ["decoder.0"]),
        ("**.0", ["encoder.0"]),  # once, by the first of its names
        (lambda name, module: name.startswith("decoder."), ["decoder.0", "decoder.1"]),
        (nn.Linear, ["encoder.0"]),
        (["extra.inner", "decoder.0"], ["extra.inner"]),  # by the pattern that came first
    ],
)
def test_a_shared_module_answers_to_each_name(pattern, expected):
    assert modules(Shared(), pattern) == expected


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        ("encoder", ["encoder.0.weight", "encoder.0.bias"]),
        ("decoder", ["decoder.0.weight", "decoder.0.bias"]),
        ("extra", ["extra.inner.weight", "extra.inner.bias"]),
        ("decoder.*.bias", ["decoder.0.bias"]),
        (lambda name, _: name.startswith("extra"), ["extra.inner.weight", "extra.inner.bias"]),
    ],
)
def test_the_parameters_of_a_shared_module_come_by_the_name_that_was_asked_for(pattern, expected):
    assert parameters(Shared(), pattern) == expected


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        ("embed.weight", ["embed.weight"]),
        ("head.weight", ["head.weight"]),
        ("**.weight", ["embed.weight"]),
        ("head", ["head.weight", "head.bias"]),
        (nn.Linear, ["head.weight", "head.bias"]),
        (nn.Embedding, ["embed.weight"]),
        (lambda name, _: name == "head.weight", ["head.weight"]),
    ],
)
def test_a_tied_weight_answers_to_each_name(pattern, expected):
    assert parameters(Tied(), pattern) == expected


# Names with characters that mean something in a pattern.


@pytest.mark.parametrize("name", ODD)
def test_any_name_is_addressed_with_backslashes(name):
    assert modules(odd_names(), escape(name)) == [name]
    assert parameters(odd_names(), escape(f"{name}.bias")) == [f"{name}.bias"]
    assert parameters(odd_names(), escape(name)) == [f"{name}.weight", f"{name}.bias"]


@pytest.mark.parametrize("name", ODD)
def test_any_name_is_addressed_by_its_module(name):
    model = odd_names()
    assert modules(model, model[name]) == [name]


@pytest.mark.parametrize("name", ["a#1", "a b", "ä層😀", "a\nb", "]", "}", "!", "\\"])
def test_a_name_that_reads_as_nothing_else_needs_no_backslash(name):
    assert modules(odd_names(), name) == [name]


def test_a_backslash_means_the_next_character_where_both_readings_exist():
    assert modules(odd_names(), r"a\*b") == ["a*b"]
    assert modules(odd_names(), r"a\b") == ["ab"]


# What is said when nothing is meant.

WHOLE = "which must match a whole name."


@pytest.mark.parametrize(
    ("pattern", "text"),
    [
        ("conv?*x", "no module matches 'conv?*x'. Closest: 'convs'."),
        ("fc", "no module matches 'fc'. Closest: 'fc2', 'fc1'."),
        ("0", "no module matches '0'. Did you mean '**.0'? It matches 'convs.0'."),
        (
            re.compile("fc"),
            f"no module matches re.compile('fc'), {WHOLE} It is found inside 'fc1', 'fc2'.",
        ),
        (re.compile("x"), f"no module matches re.compile('x'), {WHOLE}"),
        (nn.LSTM, "no module is a torch.nn.modules.rnn.LSTM."),
        (nn.Tanh(), "this Tanh is not a part of the model, or was replaced in it."),
    ],
)
def test_a_module_that_is_not_there_is_said_with_what_is(pattern, text):
    model = nn.ModuleDict(
        {"convs": nn.ModuleList([nn.Conv2d(1, 1, 1)]), "fc1": nn.Linear(1, 1), "fc2": nn.ReLU()}
    )
    with pytest.raises(NoSuchSiteError) as caught:
        modules(model, pattern)
    assert str(caught.value) == text


def test_a_function_that_wants_nothing_is_shown():
    def wanted(name, module):
        return False

    with pytest.raises(NoSuchSiteError, match=r"no module satisfies <function .*wanted at"):
        modules(MODEL, wanted)
    with pytest.raises(NoSuchSiteError, match=r"no parameter satisfies <function .*wanted at"):
        parameters(MODEL, wanted)


BIASES = "'block1.0.bias', 'block1.1.bias', 'block2.0.bias', 'fc1.bias' and 1 more"
BELOW = "'block1.0.weight', 'block1.0.bias', 'block2.0.weight', 'block2.0.bias'"


@pytest.mark.parametrize(
    ("pattern", "text"),
    [
        ("bias", f"no parameter matches 'bias'. Did you mean '**.bias'? It matches {BIASES}."),
        # What lies below modules is suggested as well.
        ("[05]", f"no parameter matches '[05]'. Did you mean '**.[05]'? It matches {BELOW}."),
        ("scales", "no parameter matches 'scales'. Closest: 'scale'."),
        (nn.LSTM, "no parameter is a torch.nn.modules.rnn.LSTM."),
        (nn.Linear(1, 1), "this Linear is not a part of the model, or was replaced in it."),
    ],
)
def test_a_parameter_that_is_not_there_is_said_with_what_is(pattern, text):
    with pytest.raises(NoSuchSiteError) as caught:
        parameters(MODEL, pattern)
    assert str(caught.value) == text


def test_one_pattern_of_many_that_means_nothing_is_named():
    with pytest.raises(NoSuchSiteError, match="no module matches 'fc9'"):
        modules(MODEL, "fc1", ["fc2", "fc9"])


def test_an_op_address_is_refused_with_the_module_to_type():
    with pytest.raises(PatternError) as caught:
        modules(MODEL, r"a\/b/relu")
    assert str(caught.value) == (
        r"'a\\/b/relu' addresses an operation inside a forward; a module or parameter is needed "
        r"here: 'a\\/b'. A '/' in a name is written '\/'."
    )
    with pytest.raises(PatternError, match="needed here: ''"):
        parameters(MODEL, "/relu")


@pytest.mark.parametrize(
    ("pattern", "shown"),
    [(3, "3 of type int"), (None, "None of type NoneType"), ([["fc1", 1.5]], "1.5 of type float")],
)
def test_what_is_no_pattern_is_refused(pattern, shown):
    with pytest.raises(PatternError) as caught:
        modules(MODEL, pattern)
    assert str(caught.value) == (
        "A pattern must be a name, a glob, a compiled regular expression, a module class, a "
        f"module, a function (name, module) -> bool, or a list of these; got {shown}. A name is "
        'written as a string, also where it is a number: "0".'
    )


def test_a_module_that_can_be_gone_through_is_one_pattern():
    model = nn.Sequential(nn.Sequential(nn.ReLU()), nn.ReLU())
    assert flatten([[model[0]]]) == [model[0]]
    assert modules(model, model[0]) == ["0"]


def test_an_error_of_the_users_function_is_not_hidden():
    with pytest.raises(ZeroDivisionError):
        modules(MODEL, lambda name, module: 1 / 0)


def test_a_parameter_where_a_module_is_needed_is_named_with_what_to_type() -> None:
    tree = Tree(nn.Sequential(nn.Linear(2, 2), nn.ReLU(), nn.Linear(2, 2)))
    with pytest.raises(NoSuchSiteError) as caught:
        find_modules(tree, ["0.weight"])
    assert str(caught.value) == (
        "'0.weight' is a parameter of '0', and no module. Read it with "
        "nethook.get_parameter(model, '0.weight'), its gradient with trace(model, '0', "
        "param_grads=True); change it with edit(model, params=...)."
    )
    with pytest.raises(NoSuchSiteError, match=r"matches 2 parameters, '0\.weight' first, and no"):
        find_modules(tree, ["*.weight"])
    with pytest.raises(NoSuchSiteError, match=r"no module matches '0\.wait'"):
        find_modules(tree, ["0.wait"])
