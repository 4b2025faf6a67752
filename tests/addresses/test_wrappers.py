"""Wrappers are transparent: the names are those of the bare model, the long spelling works too."""

from __future__ import annotations

import subprocess
import sys

import pytest
import torch
from torch import nn
from torch.distributed.algorithms._checkpoint.checkpoint_wrapper import (
    CheckpointWrapper,
    checkpoint_wrapper,
    offload_wrapper,
)
from torch.optim.swa_utils import AveragedModel

from nethook import get_module, get_parameter, select
from nethook.addresses.tree import Tree
from nethook.addresses.wrappers import inside, wrapped_attribute
from nethook.errors import NoSuchSiteError
from nethook.torch_private import is_compiled
from tests.addresses.networks import Shared, Small


def compiled(model: nn.Module) -> nn.Module:
    return torch.compile(model, backend="eager")


WRAPPERS = {
    "DataParallel": (nn.DataParallel, "module"),
    "AveragedModel": (AveragedModel, "module"),
    "torch.compile": (compiled, "_orig_mod"),
    "checkpoint": (checkpoint_wrapper, "_checkpoint_wrapped_module"),
    "offload": (offload_wrapper, "_checkpoint_wrapped_module"),
    "two": (lambda model: nn.DataParallel(compiled(model)), "module._orig_mod"),
    "one twice": (lambda model: nn.DataParallel(nn.DataParallel(model)), "module.module"),
}
every_wrapper = pytest.mark.parametrize(("wrap", "prefix"), WRAPPERS.values(), ids=WRAPPERS.keys())


def bare(wrapped: nn.Module, prefix: str) -> nn.Module:
    for attribute in prefix.split("."):
        wrapped = wrapped._modules[attribute]
    return wrapped


@every_wrapper
def test_names_are_those_of_the_bare_model(wrap, prefix):
    wrapped = wrap(Small())
    model = bare(wrapped, prefix)
    assert list(select(wrapped).items()) == list(model.named_modules())
    own = dict(model.named_parameters())
    found = select(wrapped, nn.Parameter, params=True)
    assert list(found) == list(own)
    assert all(found[name] is own[name] for name in own)


@every_wrapper
def test_the_long_spelling_is_accepted_and_not_shown(wrap, prefix):
    wrapped = wrap(Small())
    model = bare(wrapped, prefix)
    for name, module in model.named_modules():
        long = f"{prefix}.{name}" if name else prefix
        assert get_module(wrapped, long) is module
        assert select(wrapped, long) == {name: module}
    assert list(select(wrapped, f"{prefix}.fc*")) == ["fc1", "fc2"]
    assert list(select(wrapped, f"{prefix}.fc1", params=True)) == ["fc1.weight", "fc1.bias"]
    assert get_parameter(wrapped, f"{prefix}.fc1.bias") is model.fc1.bias


@every_wrapper
def test_the_spelling_that_torch_uses_is_accepted(wrap, prefix):
    """`checkpoint_wrapper` shows short names itself; all names that torch shows must be found."""
    wrapped = wrap(Small())
    for name, parameter in wrapped.named_parameters():
        assert get_parameter(wrapped, name) is parameter
    for name, buffer in wrapped.named_buffers():
        assert get_parameter(wrapped, name) is buffer
    for name, module in wrapped.named_modules():
        assert get_module(wrapped, name) is (model_in(module))


def model_in(module: nn.Module) -> nn.Module:
    while (kept := inside(module)) is not None:
        module = kept[1]
    return module


@every_wrapper
def test_globs_see_the_bare_names_only_where_these_match(wrap, prefix):
    wrapped = wrap(Small())
    model = bare(wrapped, prefix)
    assert select(wrapped, "**") == dict(list(model.named_modules())[1:])
    assert list(select(wrapped, "*")) == [name for name, _ in model.named_children()]


@every_wrapper
def test_a_wrapper_deep_inside_is_transparent_too(wrap, prefix):
    model = Small()
    plain = [name for name, _ in model.named_modules()]
    inner = model.block1[0]
    model.block1[0] = wrap(inner)
    model.block2 = wrap(model.block2)
    assert list(select(model)) == plain
    assert isinstance(get_module(model, "block1.0"), nn.Conv2d)
    assert get_module(model, f"block2.{prefix}.0") is get_module(model, "block2.0")
    assert list(select(model, f"block2.{prefix}.*")) == ["block2.0", "block2.1"]


@every_wrapper
def test_the_wrapper_itself_as_a_pattern_means_what_it_wraps(wrap, prefix):
    model = nn.Sequential(nn.Linear(1, 1), nn.ReLU())
    model[0] = wrapper = wrap(model[0])
    assert list(select(model, wrapper)) == ["0"]
    assert list(select(model, wrapper, params=True)) == ["0.weight", "0.bias"] + [
        f"0.{name}" for name in wrapper._buffers
    ]


def test_a_module_and_a_wrapper_around_it_are_one_module():
    model = nn.Module()
    model.net = nn.Linear(1, 1)
    model.fast = compiled(model.net)
    assert list(select(model, "fast")) == ["fast"]
    assert select(model, "fast", "net") == {"fast": model.net}
    site = Tree(model).find("net")
    assert (site.names, site.long) == (("net", "fast"), ("fast._orig_mod",))


def test_shared_modules_keep_all_their_names_inside_a_wrapper():
    model = Shared()
    wrapped = nn.DataParallel(model)
    for name, module in model.named_modules(remove_duplicate=False):
        assert get_module(wrapped, name) is module
        assert get_module(wrapped, f"module.{name}".rstrip(".")) is module


def test_a_child_called_module_is_itself_and_not_the_wrapped_model():
    inner = nn.Sequential()
    inner.module = nn.Linear(1, 1)
    wrapped = nn.DataParallel(inner)
    assert get_module(wrapped, "module") is inner.module
    assert get_module(wrapped, "module.module") is inner.module


def test_a_wrapper_that_the_model_reaches_again_closes_a_cycle():
    model = nn.Module()
    model.fc = nn.Linear(1, 1)
    model.again = nn.DataParallel(model)
    assert list(select(model)) == ["", "fc"]


def test_what_a_wrapper_owns_itself_has_an_address():
    averaged = AveragedModel(nn.Linear(1, 1))
    assert get_parameter(averaged, "n_averaged") is averaged.n_averaged
    assert list(select(averaged, params=True)) == ["weight", "bias", "n_averaged"]
    outer = nn.DataParallel(averaged)
    assert get_parameter(outer, "n_averaged") is averaged.n_averaged
    assert get_parameter(outer, "module.n_averaged") is averaged.n_averaged


def test_two_wrappers_that_own_the_same_name_are_told_apart():
    inner = AveragedModel(nn.Linear(1, 1))
    outer = AveragedModel(inner)
    inner = outer.module
    found = select(outer, params=True)
    assert found["n_averaged"] is outer.n_averaged
    assert found["module.n_averaged"] is inner.n_averaged


def test_what_the_model_owns_keeps_its_name_before_the_wrapper():
    model = nn.Linear(1, 1)
    model.register_buffer("n_averaged", torch.ones(()))
    averaged = AveragedModel(model)
    assert get_parameter(averaged, "n_averaged") is averaged.module.n_averaged
    assert select(averaged, params=True)["n_averaged"] is averaged.module.n_averaged


def test_a_wrapper_with_modules_of_its_own_is_an_ordinary_module():
    class WithHead(nn.DataParallel):
        def __init__(self, model):
            super().__init__(model)
            self.head = nn.Linear(1, 1)

    model = WithHead(nn.Linear(1, 1))
    assert list(select(model).items()) == list(model.named_modules())


def test_a_subclass_of_a_wrapper_is_a_wrapper():
    class Mine(nn.DataParallel):
        pass

    assert list(select(Mine(nn.Sequential(nn.ReLU())))) == ["", "0"]


def test_a_module_that_only_has_the_attribute_is_no_wrapper():
    model = nn.Module()
    model.module = nn.Linear(1, 1)
    assert inside(model) is None
    assert list(select(model)) == ["", "module"]


def test_what_wraps_is_known_by_its_class():
    assert wrapped_attribute(nn.DataParallel) == "module"
    assert wrapped_attribute(nn.parallel.DistributedDataParallel) == "module"
    assert wrapped_attribute(CheckpointWrapper) == "_checkpoint_wrapped_module"
    assert wrapped_attribute(nn.Linear) is None


def test_fully_sharded_models_are_known_by_their_class():
    from torch.distributed.fsdp import FullyShardedDataParallel

    wrapped_attribute.cache_clear()
    assert wrapped_attribute(FullyShardedDataParallel) == "_fsdp_wrapped_module"


def test_what_was_compiled_is_told_from_other_wrappers():
    assert is_compiled(compiled(nn.ReLU()))
    assert not is_compiled(nn.DataParallel(nn.ReLU()))


def test_close_names_are_never_the_long_ones():
    with pytest.raises(NoSuchSiteError) as caught:
        select(nn.DataParallel(Small()), "module.fc3")
    assert str(caught.value) == "no module matches 'module.fc3'. Closest: 'fc2', 'fc1'."


def test_a_walk_does_not_import_the_compiler():
    code = (
        "import sys, nethook; from torch import nn;"
        "nethook.select(nn.DataParallel(nn.Sequential(nn.ReLU())), '*');"
        "from nethook.addresses.wrappers import can_be_compiled;"
        "sys.exit('torch._dynamo' in sys.modules or can_be_compiled())"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
