"""Whatever runs a model by itself leaves everything as it was, for every model of the zoo.

The fingerprint knows nothing of nethook. A function may refuse a model, or fail as its forward
does: then, too, nothing may have changed.
"""

from __future__ import annotations

import random
import warnings
from collections.abc import Callable
from contextlib import redirect_stderr, suppress
from io import StringIO
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

import nethook
from nethook.watching.flight.file import Flight, flight_path, save
from tests.restoring.adversaries import ADVERSARIES, Object
from tests.restoring.fingerprint import Fingerprint
from tests.zoo import EXHIBITS, Exhibit, Given, built, loss_of
from tests.zoo.marks import exhibits_that
from tests.zoo.walk import tensors_in

Call = Callable[[nn.Module, Any], object]


def _loss(output: object, _: object = None) -> torch.Tensor:
    return loss_of(output)


def _check_gradients(samples: int) -> Call:
    def check(model: nn.Module, given: Any) -> object:
        # What the loss itself holds cannot be put back: the model gets copies.
        def loss() -> torch.Tensor:
            return loss_of(model(*_copied(given.args), **_copied(given.kwargs)))

        return nethook.Callbacks(model).check_gradients(loss, samples=samples)

    return check


def _copied(value: Any) -> Any:
    if isinstance(value, torch.Tensor):
        return value.detach().clone().requires_grad_(value.requires_grad)
    if type(value) in (tuple, list):
        return type(value)(_copied(each) for each in value)
    if type(value) is dict:
        return {key: _copied(each) for key, each in value.items()}
    return value


# Whatever runs a model by itself.
RUNS: dict[str, Call] = {
    "sites": nethook.sites,
    "sites of a copy": lambda model, given: nethook.sites(model, given, copy=True),
    "features": lambda model, given: nethook.features(model, given, at=["**"]),
    "features of one": lambda model, given: nethook.features(model, given, at=_first(model)),
    "attention_probs": nethook.attention_probs,
    "init.plan": nethook.init.plan,
    "init.verify": nethook.init.verify,
    "check_gradients": _check_gradients(samples=0),
}
MORE: dict[str, Call] = {
    "features to the end": lambda model, given: nethook.features(
        model, given, at=_first(model), call=-1
    ),
    "init.verify with a loss": lambda model, given: nethook.init.verify(model, given, _loss),
    "init.sweep": lambda model, given: nethook.init.sweep(lambda _: model, [1, 2], given),
    "check_gradients": _check_gradients(samples=1),
}


def _first(model: nn.Module) -> nn.Module:
    return next(iter(model.children()), model)


class Captured(BaseException):
    """Ends the call of an exhibit before its forward has begun."""


def captured(model: nn.Module, exhibit: Exhibit) -> Any:
    """What an exhibit calls its model with; None where that has no meaning outside of the call."""
    found: list[Any] = []

    def capture(_: nn.Module, args: Any, kwargs: Any) -> None:
        found.append(nethook.inputs(*args, **kwargs))
        raise Captured

    handle = model.register_forward_pre_hook(capture, with_kwargs=True, prepend=True)
    with suppress(Captured):
        exhibit.call(model, Given())
    handle.remove()
    if not found:
        return None
    of_torch_func = torch._C._functorch.is_functorch_wrapped_tensor
    strange = any(of_torch_func(each) for each in tensors_in((found[0].args, found[0].kwargs)))
    return None if strange else found[0]


class Untouched:
    """A model and its inputs, of which a call after the other must leave everything as it was."""

    def __init__(self, model: nn.Module, given: Any) -> None:
        self.model, self.given = model, given
        torch.manual_seed(1), random.seed(1), np.random.seed(1)
        self._before = self._fingerprint()

    def _fingerprint(self) -> Fingerprint:
        return Fingerprint(self.model, (self.given.args, self.given.kwargs))

    def by(self, name: str, call: Call, *, weights: bool = True) -> bool:
        """Fails where anything has changed; whether the call got to its end."""
        went = False
        with warnings.catch_warnings(), redirect_stderr(StringIO()):
            warnings.simplefilter("ignore")
            with suppress(Exception):
                call(self.model, self.given)
                went = True
        after = self._fingerprint()
        changes = self._before.changes(after, weights=weights)
        assert not changes, f"{name} changed:\n  " + "\n  ".join(changes[:20])
        assert [info for info in nethook.audit(self.model) if info.ours] == []
        self._before = after
        return went


@pytest.fixture(scope="module")
def flight(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A recorded step of no model in particular: it has no weights, and other random states."""
    run = tmp_path_factory.mktemp("flight") / "run.db"
    finding = {"case": "forward", "step": 3}
    state = torch.Generator().manual_seed(5).get_state()
    save(flight_path(run), Flight(finding, random={"cpu": state}, training={"": True}))
    return flight_path(run)


def _replayed(flight: Path) -> Call:
    return lambda model, given: nethook.replay(flight, model, inputs=given)


def _names(text: str) -> set[str]:
    return set(text.split())


def _all_but(text: str) -> set[str]:
    return {exhibit.name for exhibit in EXHIBITS} - _names(text)


# Which models a function does not take: without this list, one that refused all of them would
# pass. Features need tensors; a probability needs attention; a gradient needs one that can be had.
REFUSED = {
    "sites": _names("always_call_on_failure"),
    "sites of a copy": _names("always_call_on_failure pruned weight_norm_by_hook"),
    "features": _names(
        "always_call_on_failure attention_eval_fast attention_no_weights attention_weights "
        "cached_parametrisation called_in_backward catches_child checkpoint_sequential "
        "child_added chunk_views container_subclasses data_dependent dataclass_derived "
        "dataclass_frozen dataclass_plain dict_changed_by_caller dict_kinds early_return "
        "encoder_eval_with_gradient encoder_fast_path encoder_fast_path_inference "
        "encoder_fast_path_masked encoder_fast_path_padded encoder_training forward_directly "
        "func_grad_inside fx_graph_module generator_forward generator_output generator_root "
        "gru_packed identity_of_leaf inner_backward input_twice_in_output jacobian_inside "
        "lstm_batch_first lstm_bidirectional lstm_cell_loop model_output "
        "model_output_as_tuple module_dict module_list names_like_numbers names_of_wrappers "
        "nested_mix node_hooks none_among odd_names orthogonal own_functions "
        "own_parametrisation parameter_containers plain_values_only retained_gradients "
        "same_tensor_twice scripted_child skips_module_call sliced_sequential small_types "
        "spectral_norm stop_iteration structseq transformer_norm_first two_names unbind_views "
        "unicode_names vmap_inside weight_norm"
    ),
    "features of one": _names(
        "attention_weights catches_child checkpoint_sequential container_subclasses "
        "dataclass_derived dataclass_frozen dataclass_plain dict_changed_by_caller dict_kinds "
        "early_return encoder_eval_with_gradient encoder_fast_path encoder_fast_path_masked "
        "encoder_fast_path_padded encoder_training forward_directly func_grad_inside "
        "fx_graph_module generator_forward generator_output generator_root gru_packed "
        "jacobian_inside lstm_batch_first lstm_bidirectional lstm_cell_loop model_output "
        "module_dict module_list names_like_numbers nested_mix none_among odd_names "
        "parameter_containers plain_values_only retained_gradients same_tensor_twice "
        "skips_module_call sliced_sequential stop_iteration structseq unicode_names "
        "vmap_inside"
    ),
    "init.plan": _names("always_call_on_failure lazy_conv lazy_linear"),
    "init.verify": _names("always_call_on_failure lazy_conv lazy_linear output_buffer_reused"),
    "check_gradients": _names(
        "always_call_on_failure backward_refused booleans generator_root numpy_passed_through "
        "output_buffer_reused plain_values_only sparse_csr"
    ),
    "replay": _names("always_call_on_failure backward_refused lazy_conv lazy_linear meta_device"),
    "calibrate_": _names("always_call_on_failure lazy_conv lazy_linear meta_device"),
    "attention_probs": _all_but(
        "attention_eval_fast attention_no_weights attention_sdpa attention_weights "
        "encoder_eval_with_gradient encoder_fast_path encoder_fast_path_inference "
        "encoder_fast_path_masked encoder_fast_path_padded encoder_training model_output "
        "model_output_as_tuple transformer_norm_first"
    ),
}


@exhibits_that(lambda exhibit: exhibit.name != "one_shot_hook")  # what takes itself off stays off
def test_a_model_of_the_zoo_is_as_it_was(exhibit: Exhibit, flight: Path) -> None:
    model = built(exhibit)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        given = captured(model, exhibit)
    if given is None:
        pytest.skip(
            "torch.func wraps its inputs for the length of one call: they cannot be passed again"
        )
    untouched = Untouched(model, given)
    for name, call in (RUNS | {"replay": _replayed(flight)}).items():
        went = untouched.by(name, call)
        assert went or exhibit.name in REFUSED[name], f"{name} did not get to its end"
    went = untouched.by("calibrate_", nethook.init.calibrate_, weights=False)
    assert went or exhibit.name in REFUSED["calibrate_"]


# They break the forward, or the backward that is to follow.
ALWAYS = {"sites", "features of one"}
FAIL = {"raises", "modules", "input's shape", "default type", "gradient mode", "frozen", "class"}


@pytest.mark.parametrize("name", ADVERSARIES)
def test_an_adversary_leaves_nothing_behind(name: str, flight: Path) -> None:
    torch.manual_seed(0)
    model, given = ADVERSARIES[name](), nethook.inputs(torch.randn(3, 4))
    untouched = Untouched(model, given)
    for what, call in (RUNS | MORE | {"replay": _replayed(flight)}).items():
        went = untouched.by(what, call)
        assert went or name in FAIL or what not in ALWAYS, what
    with torch.no_grad():
        without = Untouched(model, given)
        for what in ("sites", "init.plan"):
            without.by(what, RUNS[what])
    untouched.by("calibrate_", nethook.init.calibrate_, weights=False)


@pytest.mark.parametrize("fails", [False, True])
def test_a_checkup_leaves_nothing_behind(fails: bool) -> None:
    """All adversaries in one model, for a check-up takes its time."""
    torch.manual_seed(0)
    parts = [make() for name, make in ADVERSARIES.items() if name not in FAIL | {"lazy"}]
    model = nn.Sequential(*parts, *([ADVERSARIES["raises"]()] if fails else []))
    given = nethook.inputs(torch.randn(16, 4), torch.randn(16, 4))
    went = Untouched(model, given).by(
        "checkup",
        lambda model, given: nethook.checkup(model, tuple(given.args), nn.MSELoss(), steps=12),
    )
    assert went is not fails


def test_objects_among_the_inputs_come_back() -> None:
    class Fills(nn.Module):
        def forward(self, x: torch.Tensor, cache: Object, log: list[int]) -> torch.Tensor:
            cache.items.append(x)
            cache.keys = x if cache.keys is None else torch.cat([cache.keys, x])
            log.append(1)
            return x

    model, cache = Fills(), Object()
    untouched = Untouched(model, nethook.inputs(torch.ones(2), cache, log=[0]))
    for name in ("sites", "features of one", "attention_probs", "init.plan", "init.verify"):
        untouched.by(name, RUNS[name])
    assert (cache.items, cache.keys) == ([], None)


def test_the_fingerprint_can_fail() -> None:
    """Each adversary, run by hand, is seen to change something."""
    blameless = {"tied"} | FAIL
    for name, make in ADVERSARIES.items():
        torch.manual_seed(0)
        model, x = make(), torch.randn(3, 4)
        before = Fingerprint(model, x)
        with suppress(Exception):
            model(x)
        changes = before.changes(Fingerprint(model, x))
        torch.set_default_dtype(torch.float32)
        torch.set_grad_enabled(True)
        assert changes or name in blameless, name
