"""Files and copies of a hooked model are those of a model without hooks, byte for byte."""

from __future__ import annotations

import copy
import copyreg
import gc
import io
import pickle
import threading
import warnings
from collections import OrderedDict
from collections.abc import Iterator
from multiprocessing.reduction import ForkingPickler
from pathlib import Path
from typing import Any
from unittest import mock

import cloudpickle
import joblib
import pytest
import safetensors.torch
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from torch import nn

import nethook
from nethook.hooks.attachment import Attachment, Resting
from nethook.hooks.hook import OUR_FLAG, Owner
from nethook.hooks.saving import LeftOut, WithoutOurHooks
from tests.hooks.common import Spy, all_hooks, net
from tests.zoo.saved import contents, without_addresses

pytestmark = pytest.mark.short


@pytest.fixture(autouse=True)
def nothing_is_registered(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """As in a process without hooks, whatever other tests have left behind."""
    gc.collect()
    monkeypatch.setattr(LeftOut, "_on", set())
    monkeypatch.setattr(LeftOut, "_registered", [])
    with mock.patch.dict(copyreg.dispatch_table):
        copyreg.dispatch_table.pop(OrderedDict, None)
        yield


def foreign(*_: Any) -> None:
    """A hook of somebody else's that can be pickled."""


def joblib_dumped(model: nn.Module) -> bytes:
    file = io.BytesIO()
    joblib.dump(model, file)
    return file.getvalue()


def torch_saved(value: Any, **options: Any) -> bytes:
    file = io.BytesIO()
    torch.save(value, file, **options)
    return file.getvalue()


def packaged(model: nn.Module) -> bytes:
    file = io.BytesIO()
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "TypedStorage is deprecated")
        with torch.package.PackageExporter(file) as exporter:
            exporter.extern("**")
            exporter.save_pickle("model", "model.pkl", model)
    return file.getvalue()


WRITERS = {
    "torch.save": torch_saved,
    "torch.save, as before 1.6": lambda model: torch_saved(
        model, _use_new_zipfile_serialization=False
    ),
    "protocol 0": lambda model: pickle.dumps(model, 0),
    "protocol 2": lambda model: pickle.dumps(model, 2),
    "protocol 5": lambda model: pickle.dumps(model, 5),
    "pickle in Python": lambda model: pickle._dumps(model),
    "cloudpickle": cloudpickle.dumps,
    "joblib": joblib_dumped,
    "multiprocessing": lambda model: bytes(ForkingPickler.dumps(copy.deepcopy(model).to("meta"))),
    "torch.package": packaged,
    "a copy": lambda model: torch_saved(copy.copy(model)),
    "a deep copy": lambda model: torch_saved(copy.deepcopy(model)),
    "a copy of a file": lambda model: torch_saved(pickle.loads(pickle.dumps(model))),
    "safetensors": lambda model: safetensors.torch.save(model.state_dict()),
    "state_dict": lambda model: torch_saved(model.state_dict()),
}


def hooked_net() -> nn.Module:
    """A model with hooks of others: before, between and behind ours, with all options."""
    model = net()
    model[0].register_forward_hook(foreign, with_kwargs=True)
    model[0].register_forward_pre_hook(foreign, with_kwargs=True)
    model.handle = model[2].register_forward_hook(foreign, always_call=True)
    return model


def with_ours(model: nn.Module, hooks: Attachment) -> Resting:
    resting = Resting(hooks.owner)
    for module in model.modules():
        hooks.forward_pre(module, Spy(hooks.owner))
        hooks.forward(module, Spy(hooks.owner), resting=resting)
        hooks.forward(module, Spy(hooks.owner), with_kwargs=True, always_call=True)
    for parameter in model.parameters():
        hooks.tensor(parameter, Spy(hooks.owner))
        hooks.accumulated(parameter, Spy(hooks.owner))
    return resting


@pytest.mark.parametrize("name", WRITERS)
def test_a_file_has_the_same_bytes_in_every_way_it_is_written(name: str) -> None:
    write, model = WRITERS[name], hooked_net()
    bare = without_addresses(write(model))
    assert without_addresses(write(model)) == bare
    with Attachment(Owner("nethook.test")) as hooks:
        resting = with_ours(model, hooks)
        assert without_addresses(write(model)) == bare
        resting.rest()
        assert without_addresses(write(model)) == bare
        resting.wake()
        assert without_addresses(write(model)) == bare
    assert without_addresses(write(model)) == bare
    assert OrderedDict not in copyreg.dispatch_table


def test_the_comparison_can_fail(monkeypatch: pytest.MonkeyPatch) -> None:
    model = hooked_net()
    bare = torch_saved(model)
    monkeypatch.setattr("nethook.hooks.saving.is_ours", lambda _: False)
    with Attachment(Owner("nethook.test")) as hooks:
        with_ours(model, hooks)
        assert torch_saved(model) != bare


def test_what_is_loaded_has_the_hooks_of_others_in_their_order() -> None:
    model = hooked_net()
    expected = all_hooks(copy.deepcopy(model))
    with Attachment(Owner("nethook.test")) as hooks:
        with_ours(model, hooks)
        assert all_hooks(copy.deepcopy(model)) == expected
        assert all_hooks(pickle.loads(pickle.dumps(model))) == expected
        loaded = pickle.loads(pickle.dumps(model))
    assert loaded.handle.hooks_dict_ref() is loaded[2]._forward_hooks


def test_it_loads_with_weights_only_where_the_classes_are_said_to_be_safe() -> None:
    model = net()
    with nethook.trace(model, inputs=True, grads=True):
        file = io.BytesIO(torch_saved(model))
    with torch.serialization.safe_globals([nn.Sequential, nn.Linear, nn.ReLU]):
        loaded = torch.load(file, weights_only=True)
    assert all_hooks(loaded) == {}


def test_pickling_in_a_hook_in_mid_forward() -> None:
    model, seen = net(), []
    model[1].register_forward_pre_hook(lambda *_: seen.append(torch_saved(model[2])))
    bare = torch_saved(model[2])
    with nethook.trace(model):
        model(torch.ones(2, 4))
    assert seen == [bare]


def test_other_ordered_dicts_are_pickled_as_ever() -> None:
    plain: OrderedDict[str, Any] = OrderedDict(a=1, b=OrderedDict(c=[2]))
    plain.note = "an attribute"  # as the `_metadata` of a state_dict
    shared = [plain, plain, OrderedDict()]
    bare = [pickle.dumps(shared, protocol) for protocol in range(6)]
    with nethook.trace(net()):
        assert [pickle.dumps(shared, protocol) for protocol in range(6)] == bare
        first, second, _ = copy.deepcopy(shared)
    assert first is second
    assert first == plain
    assert vars(first) == vars(plain)


def test_no_warning_for_a_tensor_with_a_hook_of_ours() -> None:
    leaf = torch.ones(2, requires_grad=True)
    model = net()
    with Attachment(Owner("nethook.test")) as hooks, nethook.trace(model, grads=True):
        hooks.tensor(leaf, Spy(hooks.owner))
        assert torch_saved(leaf) == torch_saved(torch.ones(2, requires_grad=True))
        torch_saved(model(torch.ones(2, 4)))  # warnings are errors here


def test_optimizers_are_saved_without_our_hooks() -> None:
    def made() -> torch.optim.Optimizer:
        torch.manual_seed(0)
        return torch.optim.Adam(net().parameters())

    bare, optimizer = torch_saved(made()), made()
    with Attachment(Owner("nethook.test")) as hooks:
        hooks.optimizer_step(optimizer, Spy(hooks.owner))
        hooks.optimizer_step(optimizer, Spy(hooks.owner), before=True)
        assert torch_saved(optimizer) == bare
        assert torch_saved(copy.deepcopy(optimizer)) == bare


def test_values_that_share_memory_lazily_are_not_seen_in_a_file() -> None:
    class Holder(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.weight = nn.Parameter(torch.arange(6.0))
            self.register_buffer("tied", self.weight.detach()[2:])

        def forward(self) -> torch.Tensor:
            return self.weight

    holder = Holder()
    writers = [lambda each: torch_saved(each.state_dict()), lambda each: pickle.dumps(each.tied)]
    bare = [without_addresses(write(holder)) for write in writers]
    with nethook.trace(holder) as tape:
        holder()
        assert [without_addresses(write(holder)) for write in writers] == bare
        holder.share_memory()
        assert torch.equal(tape[""].output, holder.weight)
    state = holder.state_dict()
    assert (
        state["tied"].untyped_storage().data_ptr() == state["weight"].untyped_storage().data_ptr()
    )


def test_an_exported_program_is_saved_as_without() -> None:
    model, x = net(), torch.ones(2, 4)

    def exported() -> bytes:
        file = io.BytesIO()
        torch.export.save(torch.export.export(model, (x,)), file)
        return file.getvalue()

    bare = exported()
    assert exported() == bare
    with nethook.trace(model, inputs=True):
        assert exported() == bare


def test_a_model_of_transformers_is_saved_as_without(tmp_path: Path) -> None:
    transformers = pytest.importorskip("transformers")
    config = transformers.GPT2Config(
        n_layer=1, n_head=1, n_embd=4, vocab_size=8, n_positions=4, bos_token_id=0, eos_token_id=0
    )
    model = transformers.GPT2LMHeadModel(config)
    model.save_pretrained(tmp_path / "bare")
    whole = torch_saved(model)  # only now: the configuration has got a line by that
    with nethook.trace(model, inputs=True, param_grads=True):
        model(torch.tensor([[1, 2, 3]]))
        model.save_pretrained(tmp_path / "traced")
        assert torch_saved(model) == whole
    bare = contents(tmp_path / "bare")
    assert "model.safetensors" in bare
    assert contents(tmp_path / "traced") == bare


# -- what is registered with Python -----------------------------------------------------------


def test_it_is_registered_while_a_module_has_a_hook_of_ours() -> None:
    model = net()
    first, second = (Attachment(Owner("nethook.test")) for _ in range(2))
    assert OrderedDict not in copyreg.dispatch_table
    first.forward(model, Spy())
    registered = copyreg.dispatch_table[OrderedDict]
    second.forward_pre(model, Spy())
    first.remove()
    first.remove()
    assert copyreg.dispatch_table[OrderedDict] is registered
    second.remove()
    assert OrderedDict not in copyreg.dispatch_table


def test_an_attachment_that_is_forgotten_ends_it() -> None:
    hooks = Attachment(Owner("nethook.test"))
    hooks.forward(net(), Spy())
    del hooks
    gc.collect()
    assert OrderedDict not in copyreg.dispatch_table


def test_it_can_be_used_again_after_it_was_removed() -> None:
    hooks, model = Attachment(Owner("nethook.test")), net()
    bare = torch_saved(model)
    for _ in range(2):
        hooks.forward(model, Spy())
        assert torch_saved(model) == bare
        hooks.remove()
    assert OrderedDict not in copyreg.dispatch_table


def sorted_pairs(entries: OrderedDict[Any, Any]) -> tuple[Any, ...]:
    return OrderedDict, (sorted(entries.items()),)


def test_the_way_of_somebody_who_came_before_is_used_and_put_back() -> None:
    copyreg.pickle(OrderedDict, sorted_pairs)
    model = net()
    bare = torch_saved(model)
    assert list(copy.deepcopy(OrderedDict(b=1, a=2))) == ["a", "b"]
    with nethook.trace(model):
        assert torch_saved(model) == bare
        assert list(copy.deepcopy(OrderedDict(b=1, a=2))) == ["a", "b"]
    assert copyreg.dispatch_table[OrderedDict] is sorted_pairs


def test_the_way_of_somebody_who_came_later_stays() -> None:
    model = net()
    with nethook.trace(model):
        below = copyreg.dispatch_table[OrderedDict]
        copyreg.pickle(OrderedDict, lambda entries: below(entries))
        later = copyreg.dispatch_table[OrderedDict]
        assert all_hooks(copy.deepcopy(model)) == {}
    assert copyreg.dispatch_table[OrderedDict] is later
    assert copy.deepcopy(OrderedDict(a=1)) == OrderedDict(a=1)
    with nethook.trace(model):  # ours is now above theirs, which calls our first one
        assert all_hooks(copy.deepcopy(model)) == {}
    assert copyreg.dispatch_table[OrderedDict] is later


def test_a_table_that_was_copied_earlier_writes_a_function_that_does_nothing() -> None:
    class Private(pickle.Pickler):
        dispatch_table = copyreg.dispatch_table.copy()

    model, file, x = net(), io.BytesIO(), torch.ones(2, 4)
    with nethook.trace(model) as tape:
        Private(file).dump(model)
        assert b"nethook" not in file.getvalue()
        assert torch.equal(pickle.loads(file.getvalue())(x), model(x))
    assert tape.forwards == 1


def test_many_threads_and_the_collector() -> None:
    stop, errors = threading.Event(), []

    def attach() -> None:
        try:
            while not stop.is_set():
                model = net()
                hooks = Attachment(Owner("nethook.test"))
                hooks.forward(model, Spy())
                assert all_hooks(copy.deepcopy(model)) == {}
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=attach) for _ in range(4)]
    for thread in threads:
        thread.start()
    for _ in range(200):
        LeftOut().remove()
    stop.set()
    for thread in threads:
        thread.join()
    gc.collect()
    assert errors == []
    assert OrderedDict not in copyreg.dispatch_table


ENTRIES = st.recursive(
    st.dictionaries(st.integers(0, 1 << 50), st.sampled_from(["theirs", "ours", "flag", 7, None])),
    lambda inner: st.dictionaries(st.integers(0, 9), inner | st.just("ours")),
    max_leaves=6,
)


def made_of(drawn: Any, *, with_ours: bool) -> Any:
    """An ordered dict as it was drawn, with our entries or without."""
    if not isinstance(drawn, dict):
        return {"theirs": foreign, "ours": Spy(), "flag": OUR_FLAG}.get(drawn, drawn)
    entries: OrderedDict[int, Any] = OrderedDict()
    entries.note = [entries, len(drawn)]  # an attribute, and a circle
    for key, each in drawn.items():
        if with_ours or each not in ("ours", "flag"):
            entries[key] = made_of(each, with_ours=with_ours)
    return entries


@given(ENTRIES)
@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
def test_any_dict_is_pickled_as_if_our_entries_had_never_been_there(drawn: Any) -> None:
    hooked, bare = made_of(drawn, with_ours=True), made_of(drawn, with_ours=False)
    left_out = LeftOut()
    try:
        for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
            expected = pickle.dumps([bare, bare], protocol)
            assert pickle.dumps([hooked, hooked], protocol) == expected
            assert pickle._dumps([hooked, hooked], protocol) == pickle._dumps(
                [bare, bare], protocol
            )
        assert pickle.dumps(copy.deepcopy(hooked)) == pickle.dumps(copy.deepcopy(bare))
    finally:
        left_out.remove()


def test_taking_apart_by_hand() -> None:
    spy = Spy()
    entries: OrderedDict[int, Any] = OrderedDict({1: foreign, 2: spy, 3: foreign})
    entries.note = "kept"
    kind, args, state, _, items = WithoutOurHooks(None)(entries)
    assert (kind, args, state) == (OrderedDict, (), {"note": "kept"})
    assert list(items) == [(1, foreign), (3, foreign)]
    assert list(entries) == [1, 2, 3]
