"""Runs an exhibit and writes down everything that somebody could see of the run.

Two observations are equal when the runs were bit-identical: outputs, gradients, parameters,
buffers, attributes, hooks of others, inputs, the autograd graph, random states, torch's modes.
"""

from __future__ import annotations

import random
import warnings
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from dataclasses import dataclass, field

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.modules import module as torch_module

from tests.zoo.bomb import Bomb
from tests.zoo.compare import Snapshot, differences, snapshot
from tests.zoo.exhibit import Exhibit, Given
from tests.zoo.walk import tensors_in

__all__ = ["Observation", "Scope", "assert_same", "built", "loss_of", "observe", "quiet"]

Scope = Callable[[nn.Module], AbstractContextManager[object]]
SEED = 20240229


@dataclass
class Observation:
    """The facts of one run, by path."""

    facts: Snapshot = field(default_factory=dict)


def assert_same(expected: Observation, seen: Observation, what: str) -> None:
    """Fail with every difference between two runs."""
    lines = differences(expected.facts, seen.facts)
    if lines:
        shown = "\n  ".join(lines[:20])
        raise AssertionError(f"{what}: {len(lines)} differences (expected != seen)\n  {shown}")


def seed_everything() -> None:
    """The same random state before every run."""
    torch.manual_seed(SEED)
    random.seed(SEED)
    np.random.seed(SEED)


def built(exhibit: Exhibit) -> nn.Module:
    """The exhibit's model, the same bits every time."""
    seed_everything()
    with quiet(exhibit):
        return exhibit.build().train(exhibit.train)


@contextmanager
def quiet(exhibit: Exhibit) -> Iterator[None]:
    """Silence the warnings that the exhibit names, and turn all others to errors."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for item in exhibit.quiet:
            warnings.filterwarnings("ignore", message=item.message, category=item.category)
        yield


def observe(
    exhibit: Exhibit,
    *,
    around: Scope = lambda _: nullcontext(),
    prepare: Callable[[nn.Module], object] = lambda _: None,
    backward_inside: bool = True,
    settle: Callable[[], object] = lambda: None,
    bomb: Bomb | None = None,
    audit: Callable[[nn.Module], object] | None = None,
) -> Observation:
    """Build, run forward and backward, and write down everything.

    `around` is entered after the build and left before (or, with `backward_inside`, after) the
    backward pass; `settle` is called before anything is written down. With a bomb the model is run
    once more afterwards, whole, and that is written down too: what an exception left behind would
    show there.
    """
    model = built(exhibit)
    prepare(model)
    seen = Observation()
    given = Given()
    output: object = None
    with quiet(exhibit):
        try:
            with bomb.planted() if bomb else nullcontext(), ExitStack() as stack:
                stack.enter_context(around(model))
                output = exhibit.call(model, given)
                if not backward_inside:
                    stack.close()
                if exhibit.differentiable:
                    loss = loss_of(output)
                    seen.facts |= {"graph": _graph(loss)}
                    loss.backward()
        except BaseException as error:
            if bomb is None or bomb.exploded is None:
                raise
            seen.facts |= {"raised": _chain(error), "the very same": error is bomb.exploded}
            _forget_frames(error)
        settle()
        # One snapshot for all, so that shared memory between output, inputs and model is seen.
        whole = {"output": output, "inputs": given.tensors, "model": model}
        seen.facts |= snapshot(whole) | _surroundings()
        if audit is not None:
            seen.facts |= {"audit": audit(model)}
        if bomb is not None:
            given = Given()
            output = exhibit.call(model, given)
            if exhibit.differentiable:
                loss_of(output).backward()
            whole = {"output": output, "inputs": given.tensors, "model": model}
            again = snapshot(whole) | _surroundings()
            seen.facts |= {f"again {path}": fact for path, fact in again.items()}
    return seen


def loss_of(output: object) -> Tensor:
    """A scalar in which every number of every differentiable output has a weight of its own."""
    total = torch.zeros((), dtype=torch.float64)
    for tensor in tensors_in(output):
        if tensor.requires_grad:
            total = total + _weighed(tensor)
    return total


def _weighed(tensor: Tensor) -> Tensor:
    if type(tensor) is not Tensor:
        tensor = tensor.as_subclass(Tensor)
    if tensor.layout is not torch.strided:
        tensor = tensor.to_dense()
    if tensor.is_complex():
        tensor = torch.view_as_real(tensor.resolve_conj())
    flat = tensor.reshape(-1).to(torch.float64)
    ramp = torch.arange(flat.numel(), dtype=torch.float64)
    return (flat * (ramp % 7 * 0.125 + 0.25)).sum()


def _graph(loss: Tensor) -> tuple[str, ...]:
    """The nodes of the autograd graph, breadth first: an observer adds none."""
    if loss.grad_fn is None:
        return ()
    names, queue, seen = [], [loss.grad_fn], {loss.grad_fn}
    for node in queue:
        names.append(node.name())
        for following, _ in node.next_functions:
            if following is not None and following not in seen:
                seen.add(following)
                queue.append(following)
    return tuple(names)


def _chain(error: BaseException) -> tuple[str, ...]:
    """An exception with what it came from; nobody may slip anything in between."""
    chain = []
    following: BaseException | None = error
    while following is not None:
        chain.append(f"{type(following).__qualname__}: {following}")
        following = following.__cause__ or following.__context__
    return tuple(chain)


def _forget_frames(error: BaseException) -> None:
    """A traceback holds every frame it went through, and with them whatever they hold."""
    following: BaseException | None = error
    while following is not None:
        following.__traceback__ = None
        following = following.__cause__ or following.__context__


def _surroundings() -> Snapshot:
    """What a run may leave behind outside of the model."""
    tables = {
        name: len(table)
        for name, table in vars(torch_module).items()
        if name.startswith("_global_") and name.endswith("hooks") and table is not None
    }
    wrapped = (nn.Module.__call__, nn.Module._call_impl, torch.autograd.backward, Tensor.backward)
    return {
        "random state of torch": torch.get_rng_state().numpy().tobytes(),
        "random state of python": random.getstate(),
        "random state of numpy": repr(np.random.get_state(legacy=False)),
        "gradient mode": torch.is_grad_enabled(),
        "inference mode": torch.is_inference_mode_enabled(),
        "autocast": (torch.is_autocast_enabled("cpu"), torch.get_autocast_dtype("cpu")),
        "default dtype": torch.get_default_dtype(),
        "function modes": torch._C._len_torch_function_stack(),
        "dispatch modes": torch._C._len_torch_dispatch_stack(),
        "anomaly mode": torch.is_anomaly_enabled(),
        "torch.func": torch._C._functorch.peek_interpreter_stack() is None,
        "global hooks": tables,
        "functions of torch": tuple(map(id, wrapped)),
    }
