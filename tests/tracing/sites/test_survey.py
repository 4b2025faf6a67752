"""`sites`: what the map says, what it filters, and that the model is as before."""

from __future__ import annotations

import copy
import html
import io
import json
import random
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from rich.console import Console
from torch import nn
from torch.nn import functional as F

import nethook
from nethook.errors import InputsError, NoSuchSiteError, OptionError, PatternError
from tests.tracing.zoo_runs import bare, hooks_of
from tests.zoo import Exhibit, assert_same, observe
from tests.zoo.marks import exhibits_that


class Block(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.fc = nn.Linear(4, 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + F.relu(self.fc(x))  # the line that is found


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.blocks = nn.ModuleList([Block(), Block()])
        self.act = nn.ReLU()
        self.alias = self.act
        self.unused = nn.Linear(1, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for block in self.blocks:
            x = self.act(block(x))
        x = x.softmax(-1)
        return x.argmax(-1)


LINE = next(
    number
    for number, line in enumerate(Path(__file__).read_text(encoding="utf-8").splitlines(), 1)
    if line.endswith("# the line that is found")
)


@pytest.fixture
def model() -> nn.Module:
    torch.manual_seed(0)
    return Net()


@pytest.fixture
def found(model: nn.Module) -> Any:
    return nethook.sites(model, torch.randn(3, 4))


def test_every_module_call_and_operation_is_there_in_order(found: Any) -> None:
    assert [row.address for row in found] == [
        "", "blocks.0", "blocks.0.fc", "blocks.0.fc/linear#0", "blocks.0/relu#0", "blocks.0/add#0",
        "act", "act/relu#0", "blocks.1", "blocks.1.fc", "blocks.1.fc/linear#0", "blocks.1/relu#0",
        "blocks.1/add#0", "/softmax#0", "/argmax#0",
    ]  # fmt: skip
    assert found.order[-4:] == (("act", 1), ("act/relu#0", 1), ("/softmax#0", 0), ("/argmax#0", 0))
    assert found.uncalled == ("unused",)


def test_a_site_says_what_it_is(found: Any) -> None:
    linear = found.site("blocks.0.fc/linear#0")
    assert (linear.kind, linear.type, linear.depth, linear.module) == (
        "op", "linear", 3, "blocks.0.fc",
    )  # fmt: skip
    assert linear.shapes == ((3, 4),)
    assert linear.input_shapes == ((3, 4), (4, 4), (4,))
    assert linear.dtypes == ("float32",)
    assert linear.parameters == ("blocks.0.fc.weight", "blocks.0.fc.bias")
    assert linear.source == (__file__, LINE)
    assert str(linear.source) == f"test_survey.py:{LINE}"
    fc = found.site("blocks.0.fc")
    assert (fc.kind, fc.type, fc.parameters) == ("module", "Linear", linear.parameters)
    assert found.site("alias") is found.site("act")
    assert found.site("alias/relu#0").calls == 2
    assert found.site("/argmax#0").dtypes == ("int64",)
    assert found.site("").module is None


def test_filters(found: Any) -> None:
    def addresses(rows: Any) -> list[str]:
        return [row.address for row in rows]

    assert addresses(found["**/relu"]) == ["blocks.0/relu#0", "act/relu#0", "blocks.1/relu#0"]
    assert addresses(found["blocks.*/add#0"]) == ["blocks.0/add#0", "blocks.1/add#0"]
    assert addresses(found["/*"]) == ["/softmax#0", "/argmax#0"]
    assert addresses(found["blocks.?"]) == ["blocks.0", "blocks.1"]
    assert addresses(found["alias/*"]) == ["act/relu#0"]
    assert addresses(found[re.compile(r"blocks\.\d\.fc")]) == ["blocks.0.fc", "blocks.1.fc"]
    assert addresses(found.filter(type=nn.Linear)) == ["blocks.0.fc", "blocks.1.fc"]
    assert addresses(found.filter(type="softmax")) == ["/softmax#0"]
    assert addresses(found.filter(depth=1, kind="module")) == ["", "blocks.0", "act", "blocks.1"]
    assert addresses(found.filter("blocks.0.**", depth=2)) == ["blocks.0.fc"]
    assert found["act"].order == (("act", 0), ("act", 1))
    assert "blocks.0/add#0" in found
    assert "blocks.0/add#1" not in found
    assert len(found.modules) + len(found.ops) == len(found) == 15


def test_what_is_not_there_is_told(found: Any) -> None:
    with pytest.raises(NoSuchSiteError) as none:
        found["**/gelu"]
    assert str(none.value).startswith("no site of this forward matches '**/gelu'.")
    with pytest.raises(NoSuchSiteError) as close:
        found.site("blocks.0/addd#0")
    assert "Closest: 'blocks.0/add#0'" in str(close.value)
    with pytest.raises(NoSuchSiteError) as uncalled:
        found["unused"]
    assert str(uncalled.value) == (
        "'unused' was not called in this forward; it is a module of the model."
    )
    with pytest.raises(NoSuchSiteError):
        found.filter(type=nn.Conv2d)
    with pytest.raises(PatternError) as pattern:
        found[nn.Linear]
    assert "To choose by class, write .filter(type=...)." in str(pattern.value)
    with pytest.raises(OptionError):
        found.filter(kind="operation")


def test_it_prints_as_a_tree(found: Any) -> None:
    lines = repr(found).splitlines()
    assert lines[0] == "6 modules, 9 operations; 1 not called"
    assert lines[1].split() == ["site", "type", "output", "parameters", "calls", "source"]
    assert lines[6].startswith("│  │  └─ blocks.0.fc/linear#0          (3, 4)      weight, bias")
    assert lines[9].split() == ["├─", "act", "ReLU", "(3,", "4)", "2", lines[9].split()[-1]]
    assert repr(found["**/relu"]).splitlines()[0] == "0 modules, 3 operations"
    console = Console(file=io.StringIO(), record=True, width=200)
    console.print(found)
    printed = console.export_text()
    for row in found:
        assert row.address in printed
        assert html.escape(row.address) in found._repr_html_()


def test_a_large_map_is_folded() -> None:
    deep = nn.Sequential(*[nn.Sequential(Block()) for _ in range(40)])
    found = nethook.sites(deep, torch.randn(3, 4))
    assert len(found) > 160
    assert len(repr(found).splitlines()) < 90
    assert "0  (+5 below)" in repr(found)
    assert len(found.tree().splitlines()) == len(found) + 3


def test_it_is_plain_data(found: Any) -> None:
    again = json.loads(json.dumps(found.to_dict()))
    assert again["uncalled"] == ["unused"]
    assert again["sites"][3] == {
        "address": "blocks.0.fc/linear#0",
        "kind": "op",
        "type": "linear",
        "depth": 3,
        "module": "blocks.0.fc",
        "shapes": [[3, 4]],
        "dtypes": ["float32"],
        "input_shapes": [[3, 4], [4, 4], [4]],
        "parameters": ["blocks.0.fc.weight", "blocks.0.fc.bias"],
        "file": __file__,
        "line": LINE,
        "calls": 1,
    }


def random_states() -> list[Any]:
    state = np.random.get_state()
    return [torch.get_rng_state().tolist(), random.getstate(), state[1].tolist(), state[2]]


def test_mode_buffers_gradients_and_random_state_are_restored() -> None:
    class Restless(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.bn, self.fc = nn.BatchNorm1d(4), nn.Linear(4, 2)
            self.register_buffer("count", torch.zeros(1))
            self.register_buffer("cache", None)
            self.generator = torch.Generator().manual_seed(3)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            self.count = self.count + 1  # another tensor in its place
            self.cache = x.clone()
            self.register_buffer("new", x.clone(), persistent=False)
            x = F.dropout(self.bn(x)) + torch.rand(1, generator=self.generator)
            x = x * random.random() * np.random.rand()
            self.fc.eval()
            if self.fc.weight.grad is not None:
                self.fc.weight.grad.zero_()
            return self.fc(x.float())

    model, x = Restless(), torch.randn(5, 4)
    model.fc.weight.grad = torch.ones(2, 4)
    model.bn.eval()
    count, grad = model.count, model.fc.weight.grad
    state = copy.deepcopy(model.state_dict())
    before = random_states()
    drawn = model.generator.get_state()
    nethook.sites(model, x)
    nethook.sites(model.train(), x)
    model.bn.eval()
    assert random_states() == before
    assert torch.equal(model.generator.get_state(), drawn)
    assert model.count is count
    assert model.fc.weight.grad is grad
    assert grad.tolist() == torch.ones(2, 4).tolist()
    assert list(model._buffers) == ["count", "cache"]
    assert model.cache is None
    assert (model.training, model.bn.training, model.fc.training) == (True, False, True)
    assert model.state_dict().keys() == state.keys()
    assert all(torch.equal(each, state[key]) for key, each in model.state_dict().items())


@pytest.mark.parametrize("copied", [True, False])
def test_python_state_and_inputs_are_restored(copied: bool) -> None:
    class Counts(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.seen: list[int] = []

        def forward(self, x: torch.Tensor, cache: list[int]) -> torch.Tensor:
            self.seen.append(1)
            cache.append(1)
            return x.mul_(2)

    model, x, cache = Counts(), torch.ones(2), [0]
    nethook.sites(model, (x, cache), copy=copied)
    assert (model.seen, cache, x.tolist()) == ([], [0], [1.0, 1.0])


def test_an_exception_restores_too_and_leaves_no_hook() -> None:
    class Fails(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.bn = nn.BatchNorm1d(4)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            raise RuntimeError(f"no {self.bn(x).shape}")

    model = Fails()
    before = torch.get_rng_state()
    with pytest.raises(RuntimeError, match=r"no torch\.Size"):
        nethook.sites(model, torch.randn(3, 4))
    assert not model.bn.running_mean.any()
    assert not nethook.audit(model)
    assert torch.backends.mha.get_fastpath_enabled()
    torch.randn(3, 4)
    torch.set_rng_state(before)


def test_meta_inputs_need_no_memory_and_no_meta_model(model: nn.Module) -> None:
    x = torch.randn(3, 4)
    real = nethook.sites(model, x)
    assert nethook.sites(model, x.to("meta")).to_dict() == real.to_dict()
    assert all(not each.is_meta for each in model.parameters())
    with torch.device("meta"):
        large = nn.Sequential(nn.Linear(100_000, 100_000), nn.ReLU(), nn.Linear(100_000, 7))
    found = nethook.sites(large, torch.empty(2, 100_000, device="meta"))
    assert found.site("2").shapes == ((2, 7),)

    class Reads(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x if x.sum().item() > 0 else -x

    with pytest.raises(RuntimeError) as caught:
        nethook.sites(Reads(), torch.empty(2, device="meta"))
    (note,) = caught.value.__notes__
    assert note == (
        "nethook.sites ran the model without data, because an input is on the device 'meta'. "
        "Where a forward depends on values, give it inputs with data."
    )


def test_lazy_modules_stay_lazy() -> None:
    model = nn.Sequential(nn.LazyLinear(3), nn.ReLU())
    found = nethook.sites(model, torch.randn(2, 5))
    assert found.site("0").shapes == ((2, 3),)
    assert model[0].has_uninitialized_params()


def test_wrong_arguments_are_refused(model: nn.Module) -> None:
    with pytest.raises(InputsError, match=r"`model` must be an nn\.Module; got str"):
        nethook.sites("model", torch.ones(1))
    with pytest.raises(InputsError, match="`inputs` must be a tensor, a tuple"):
        nethook.sites(model, [1])


def test_wrapped_and_compiled_models_have_bare_addresses(model: nn.Module) -> None:
    x = torch.randn(3, 4)
    bare = nethook.sites(model, x)
    assert nethook.sites(nn.DataParallel(model), x).order == bare.order
    compiled = torch.compile(model, backend="eager")
    assert nethook.sites(compiled, x).order == bare.order


def mapped_before_its_first_call(exhibit: Exhibit) -> Any:
    """A run in which `sites` is called with the very inputs of the model's first call."""

    @contextmanager
    def around(model: nn.Module) -> Iterator[None]:
        def first(module: nn.Module, args: Any, kwargs: Any) -> None:
            handle.remove()
            nethook.sites(module, nethook.inputs(*args, **kwargs))

        handle = model.register_forward_pre_hook(first, with_kwargs=True)
        yield
        handle.remove()

    return observe(exhibit, around=around, audit=hooks_of)


# One hook takes itself off, and stays off; the other's forward raises, also when it is mapped.
@exhibits_that(lambda exhibit: exhibit.name not in {"one_shot_hook", "always_call_on_failure"})
def test_a_model_of_the_zoo_is_as_it_was(exhibit: Exhibit) -> None:
    seen = mapped_before_its_first_call(exhibit)
    assert_same(bare(exhibit), seen, "mapped")


def test_names_with_special_characters_are_found() -> None:
    class Odd(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.parts = nn.ModuleDict({"a*b/c": nn.Linear(4, 4)})

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.parts["a*b/c"](x)

    model = Odd()
    found = nethook.sites(model, torch.randn(3, 4))
    address = "parts.a\\*b\\/c/linear#0"
    assert found.site("parts.a*b/c").type == "Linear"
    assert found.site(address).type == "linear"
    assert [row.address for row in found["parts.a\\*b\\/c/*"]] == [address]
    assert [row.address for row in found["parts.*"]] == ["parts.a*b/c"]
    with nethook.trace(model, address) as tape:  # what the map says can be typed
        model(torch.randn(3, 4))
    assert tape[address].output.shape == (3, 4)


def test_every_address_of_the_map_can_be_traced(model: nn.Module) -> None:
    x = torch.randn(3, 4)
    found = nethook.sites(model, x)
    with nethook.trace(model, *[row.address for row in found]) as tape:
        model(x)
    for row in found:
        assert len(tape[row.address].calls) == row.calls
        assert tuple(tape[row.address].calls[0].output.shape) == row.shapes[0]


def test_it_runs_in_inference_mode_and_under_autocast(model: nn.Module) -> None:
    x = torch.randn(3, 4)
    order = nethook.sites(model, x).order
    with torch.inference_mode():
        assert nethook.sites(model, x).order == order
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert nethook.sites(model, x).site("blocks.0.fc").dtypes == ("bfloat16",)


def test_threads_map_one_after_the_other(model: nn.Module) -> None:
    x = torch.randn(3, 4)
    order = nethook.sites(model, x).order
    found: list[bool] = []

    def several() -> None:
        found.extend(nethook.sites(model, x).order == order for _ in range(5))

    threads = [threading.Thread(target=several) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [True] * 20
    assert torch.backends.mha.get_fastpath_enabled()
    assert not nethook.audit(model)
