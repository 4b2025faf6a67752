"""Exhibits of the zoo as the tests of tracing run them, and what those tests ask of a model."""

from __future__ import annotations

from contextlib import suppress
from functools import cache
from typing import Any

from torch import nn

import nethook
from tests.zoo import Exhibit, Observation, modules_of, observe
from tests.zoo.marks import exhibits_that


def hooks_of(model: nn.Module) -> object:
    """What `audit` says, without the hook objects themselves: they differ from build to build."""
    return [(info.address, info.kind, info.owner, info.ours) for info in nethook.audit(model)]


@cache
def bare(exhibit: Exhibit, backward_inside: bool = True) -> Observation:
    """The run without nethook, once for all tests."""
    return observe(exhibit, audit=hooks_of, backward_inside=backward_inside)


def every_module(name: str, module: nn.Module) -> bool:
    return True


def read_all(call: Any) -> None:
    """Read what may be gone by now; nothing but nethook's own errors may come of it."""
    for quantity in ("output", "args", "kwargs", "input", "grads", "input_grads"):
        with suppress(nethook.errors.ReadError):
            getattr(call, quantity)


def escaped(name: str) -> str:
    """A name as a pattern that matches it and nothing else."""
    return "".join(f"\\{sign}" if sign in "*?[]{}/#\\" else sign for sign in name)


def addresses(model: nn.Module) -> dict[str, str]:
    """The address of each module, by its torch name; wrappers have none, they are transparent."""
    found = {}
    for name, module in modules_of(model).items():
        try:
            chosen = nethook.select(model, module)
        except LookupError:
            continue
        for address, each in chosen.items():
            if each is module:  # and not what it wraps
                found[name] = address
    return found


# Where the oracle, a mode around the whole forward, would itself change or miss something.
NOT_JUDGED = {
    "attention_eval_fast": "fused",
    "encoder_fast_path": "fused",
    "encoder_fast_path_masked": "fused",
    "encoder_fast_path_padded": "fused",
    "encoder_fast_path_inference": "fused",
    "threads": "a mode belongs to a thread",
    "data_parallel": "two models, one inside the other, have one name",
    "deep_copy_inside": "the copy holds the hooks of the oracle",
    "saved_inside": "the copy holds the hooks of the oracle",
    "replicas": "replicas are called by hooks of the original",
    "hooks_cleared": "the hooks of the oracle are cleared",
    "hook_tables_replaced": "the hooks of the oracle are replaced",
    "child_replaced": "the new child has no hooks of the oracle",
    "child_added": "the new child has no hooks of the oracle",
    "generator_root": "runs when the call is over",
    "catches_child": "the hooks of the oracle are not told of exceptions",
    "stop_iteration": "the hooks of the oracle are not told of exceptions",
    "always_call_on_failure": "the hooks of the oracle are not told of exceptions",
    "global_hooks": "operations of global hooks run outside of local ones",
    "global_backward_hooks": "operations of global hooks run outside of local ones",
}


judged = exhibits_that(lambda item: not item.no_oracle and item.name not in NOT_JUDGED)
