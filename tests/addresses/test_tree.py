"""The walk over a model, against torch's own: `named_modules` and `named_parameters`."""

from __future__ import annotations

import sys
from collections import Counter, OrderedDict
from collections.abc import Callable

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn
from torch.nn.utils import parametrizations, parametrize

from nethook.addresses.select import select
from nethook.addresses.tree import Index, Tree
from nethook.errors import InputsError
from tests.addresses.networks import Cycle, Diamonds, Shared, Small, Tied, odd_names


def names_of(index: Index) -> dict[str, object]:
    value = "module" if isinstance(index, Tree) else "tensor"
    return {name: getattr(site, value) for site in index.sites for name in site.names}


def torch_modules(model: nn.Module) -> dict[str, nn.Module]:
    return dict(model.named_modules(remove_duplicate=False))


def torch_tensors(model: nn.Module) -> dict[str, torch.Tensor]:
    return {
        **dict(model.named_parameters(remove_duplicate=False)),
        **dict(model.named_buffers(remove_duplicate=False)),
    }


def same(ours: dict[str, object], theirs: dict) -> bool:
    return ours.keys() == theirs.keys() and all(ours[name] is theirs[name] for name in theirs)


MODELS = [
    Small,
    Shared,
    Tied,
    Diamonds,
    odd_names,
    lambda: nn.Linear(2, 2),
    lambda: nn.ReLU(),
    lambda: nn.LSTM(2, 2, num_layers=2),
    lambda: nn.TransformerEncoderLayer(4, 2, 8),
    lambda: nn.Sequential(nn.LazyLinear(3), nn.LazyBatchNorm1d()),
    lambda: nn.ModuleDict(
        {"list": nn.ModuleList([nn.ReLU()]), "more": nn.ParameterList([torch.ones(1), 1])}
    ),
]


@pytest.mark.parametrize("make", MODELS)
def test_modules_have_the_names_that_torch_gives_them(make):
    model = make()
    assert same(names_of(Tree(model)), torch_modules(model))


@pytest.mark.parametrize("make", MODELS)
def test_each_module_is_there_once_in_the_order_of_torch(make):
    model = make()
    sites = Tree(model).sites
    assert [(site.address, site.module) for site in sites] == list(model.named_modules())
    assert [site.order for site in sites] == list(range(len(sites)))
    assert Tree(model).modules == [site.module for site in sites]


@pytest.mark.parametrize("make", MODELS)
def test_parameters_and_buffers_have_the_names_that_torch_gives_them(make):
    model = make()
    assert same(names_of(Tree(model).parameters()), torch_tensors(model))


@pytest.mark.parametrize("make", MODELS)
def test_each_parameter_is_there_once_in_the_order_of_torch(make):
    model = make()
    sites = Tree(model).parameters().sites
    ours = [site for site in sites if isinstance(site.tensor, nn.Parameter)]
    assert [site.address for site in ours] == [name for name, _ in model.named_parameters()]
    assert [site.order for site in sites] == list(range(len(sites)))


@pytest.mark.parametrize("make", MODELS)
def test_every_name_leads_to_its_module(make):
    model = make()
    tree = Tree(model)
    for name, module in torch_modules(model).items():
        assert tree.find(name).module is module
        assert tree.find_module(module) is tree.find(name)


@st.composite
def networks(draw) -> nn.Module:
    """Modules that take their children, by chance, from those that there are already."""
    made: list[nn.Module] = []
    for _ in range(draw(st.integers(1, 7))):
        module = nn.Module()
        for key in draw(st.lists(st.sampled_from("abc"), max_size=3, unique=True)):
            module.add_module(key, draw(st.sampled_from([*made, None])))
        if draw(st.booleans()):
            module.weight = nn.Parameter(torch.zeros(()))
        made.append(module)
    return made[-1]


@given(networks())
def test_any_sharing_of_modules_is_named_as_torch_names_it(model):
    tree = Tree(model)
    assert same(names_of(tree), torch_modules(model))
    assert same(names_of(tree.parameters()), torch_tensors(model))
    assert [site.address for site in tree.sites] == [name for name, _ in model.named_modules()]


def test_leaves_are_the_modules_without_modules_below():
    model = Small()
    leaves = [site.module for site in Tree(model).leaves()]
    assert leaves == [m for m in model.modules() if not list(m.children())]


def test_the_only_module_of_a_model_is_a_leaf():
    model = nn.Linear(1, 1)
    assert [site.address for site in Tree(model).leaves()] == [""]


def test_a_cycle_of_modules_is_entered_once():
    model = Cycle()
    tree = Tree(model)
    assert [(s.address, s.module) for s in tree.sites] == list(model.named_modules())
    # What a name leads to is what Python reads there.
    for name, module in names_of(tree).items():
        assert model.get_submodule(name) is module
    assert "two.one.fc" in names_of(tree)


@pytest.mark.parametrize("depth", [1, 6])
def test_parametrised_tensors_answer_to_the_name_of_the_bare_model(depth):
    model = nn.Sequential(OrderedDict(fc=nn.Linear(2, 2), act=nn.ReLU()))
    for _ in range(depth):
        parametrize.register_parametrization(model.fc, "weight", nn.Tanh())
    tree = Tree(model)
    original = model.fc.parametrizations.weight.original
    (site,) = [each for each in tree.parameters().sites if each.tensor is original]
    assert site.address == "fc.weight"
    assert site.names == ("fc.weight", "fc.parametrizations.weight.original")
    assert model.fc in [owner.module for owner in site.owners]
    # The parts of a parametrisation have addresses, but the bare model has no such layers.
    assert tree.find("fc.parametrizations.weight.0").module is model.fc.parametrizations.weight[0]
    assert [site.address for site in tree.leaves()] == ["fc", "act"]


def test_a_parametrised_root_answers_to_the_bare_name_too():
    fc = parametrize.register_parametrization(nn.Linear(2, 2), "weight", nn.Tanh())
    tree = Tree(fc)
    assert tree.parameters().find("weight").tensor is fc.parametrizations.weight.original
    assert [site.address for site in tree.leaves()] == [""]


def test_a_parametrisation_of_two_tensors_keeps_their_long_names_only():
    fc = parametrizations.weight_norm(nn.Linear(2, 2))
    names = Tree(fc).parameters().shown()
    assert names == [
        "bias",
        "parametrizations.weight.original0",
        "parametrizations.weight.original1",
    ]


def test_a_part_of_a_parametrisation_that_the_model_uses_elsewhere_is_a_leaf():
    model = nn.Sequential(nn.Linear(2, 2), nn.Tanh())
    parametrize.register_parametrization(model[0], "weight", model[1])
    assert model[1] in [site.module for site in Tree(model).leaves()]


def test_a_parametrisation_list_under_another_name_makes_no_names_up():
    model = nn.Module()
    model.fc = parametrize.register_parametrization(nn.Linear(2, 2), "weight", nn.Tanh())
    model.holder = nn.Module()
    model.holder.again = model.fc.parametrizations.weight
    names = Tree(model).parameters().shown()
    assert sorted(set(names) - {"fc.weight"}) == sorted(torch_tensors(model))


def test_a_child_that_only_looks_like_a_parametrisation_is_an_ordinary_one():
    model = nn.Module()
    model.child = nn.Module()
    model.child.parametrizations = nn.Sequential(nn.Linear(1, 1))
    tree = Tree(model)
    assert same(names_of(tree), torch_modules(model))
    assert [site.address for site in tree.leaves()] == ["child.parametrizations.0"]


@pytest.mark.filterwarnings("ignore:`torch.jit")  # deprecated, from 2.10 on
def test_the_inside_of_a_script_module_is_named_as_torch_names_it():
    scripted = torch.jit.script(nn.Sequential(nn.Linear(2, 2), nn.BatchNorm1d(2), nn.ReLU()))
    model = nn.Sequential(scripted, nn.ReLU())
    tree = Tree(model)
    assert tree.names().keys() == torch_modules(model).keys()
    parameters = names_of(tree.parameters())
    theirs = torch_tensors(model)
    assert parameters.keys() == theirs.keys()
    assert all(torch.equal(parameters[name], theirs[name]) for name in theirs)
    assert [s.address for s in tree.leaves()] == ["0.0", "0.1", "0.2", "1"]


def test_a_lazy_parameter_can_be_listed_before_it_has_a_shape():
    (weight, bias) = Tree(nn.LazyLinear(3)).parameters().sites
    assert repr(weight) == "ParameterSite('weight', UninitializedParameter)"
    assert bias.address == "bias"


def test_sites_show_their_address_and_class():
    model = Small()
    assert repr(Tree(model).find("fc1")) == "Site('fc1', Linear)"
    assert repr(Tree(model).parameters().find("steps")) == "ParameterSite('steps', Tensor)"


def test_tied_weights_know_all_their_owners():
    (weight, _) = Tree(Tied()).parameters().sites
    assert weight.names == ("embed.weight", "head.weight")
    assert [owner.address for owner in weight.owners] == ["embed", "head"]


def test_modules_that_say_they_are_equal_are_kept_apart():
    class Equal(nn.Linear):
        def __eq__(self, other):
            return True

        def __hash__(self):
            return 7

    model = nn.Sequential(Equal(1, 1), Equal(1, 1))
    tree = Tree(model)
    assert [site.names for site in tree.sites] == [("",), ("0",), ("1",)]
    assert tree.find_module(model[1]).address == "1"


@pytest.mark.parametrize("model", [None, nn.Linear, {"fc": nn.Linear(1, 1)}, lambda x: x])
def test_what_is_no_module_is_no_model(model):
    with pytest.raises(InputsError, match=r"`model` must be an nn.Module; got \w+\. \w"):
        Tree(model)


def test_the_class_of_a_model_is_told_from_a_model():
    with pytest.raises(InputsError) as caught:
        Tree(nn.Linear)
    assert str(caught.value) == (
        "`model` must be an nn.Module; got type. That is the class: write Linear(...)."
    )


class Counting(OrderedDict):
    """The children of a module; counts how often they are gone through."""

    walks: Counter

    def items(self):
        self.walks[id(self)] += 1
        return super().items()


def _counted(model: nn.Module) -> Counter:
    walks: Counter = Counter()
    for module in model.modules():
        children = Counting(module._modules)
        children.walks = walks
        module._modules = children
    walks.clear()
    return walks


@pytest.mark.parametrize("params", [False, True])
def test_a_model_of_thousands_of_modules_is_walked_once_for_all_patterns(params):
    blocks = [nn.Sequential(nn.Identity(), nn.Linear(1, 1)) for _ in range(1000)]
    model = nn.Sequential(*blocks)
    walks = _counted(model)
    found = select(model, *(f"{i}.?" for i in range(500)), "**.1", nn.Linear, params=params)
    assert len(found) == (2000 if params else 1501)
    assert set(walks.values()) == {1}
    assert len(walks) == 1001  # the modules without children need no look at them


def _calls(function: Callable[[], object]) -> int:
    """How many calls a function makes, of Python and of C: work, without a clock."""
    events: Counter = Counter()
    before = sys.getprofile()
    sys.setprofile(lambda frame, event, argument: events.update([event]))
    try:
        function()
    finally:
        sys.setprofile(before)
    return events["call"] + events["c_call"]


def _activation_everywhere(layers: int) -> nn.Module:
    activation = nn.ReLU()
    pairs = ((nn.Identity(), activation) for _ in range(layers))
    return nn.Sequential(*(each for pair in pairs for each in pair))


def _flat(layers: int) -> nn.Module:
    return nn.Sequential(*(nn.Linear(1, 1) for _ in range(layers)))


@pytest.mark.parametrize("make", [_flat, _activation_everywhere])
def test_the_work_of_a_walk_is_linear(make):
    small, large = make(200), make(400)
    assert _calls(lambda: Tree(large)) < 2.5 * _calls(lambda: Tree(small))


@pytest.mark.parametrize("pattern", ["**", "*", "**.weight", nn.Linear])
def test_the_work_of_selecting_parameters_is_linear(pattern):
    small, large = _flat(200), _flat(400)
    for model in (small, large):
        select(model, pattern, params=True)  # the pattern is read once, and the model remembered
    few = _calls(lambda: select(small, pattern, params=True))
    many = _calls(lambda: select(large, pattern, params=True))
    assert many < 2.5 * few
