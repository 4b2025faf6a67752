"""Whatever a script does between output and loss, a replay does the same: random chains of it."""

from __future__ import annotations

from collections.abc import Callable

import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn
from torch.nn import functional as F

from nethook.examining.passage import Passage, passage_of
from nethook.examining.recording import Recording
from nethook.hooks.ops.calls import EveryCall

SHAPE = (3, 4, 6)
Link = Callable[[torch.Tensor, int], torch.Tensor]
Chain = list[tuple[str, int, int]]
"""Per operation: its name, which of the tensors so far it takes, and a number."""


def constant(shape: torch.Size, number: int) -> torch.Tensor:
    return torch.sin(torch.arange(shape.numel(), dtype=torch.float32) + number).reshape(shape)


def dim(tensor: torch.Tensor, number: int) -> int:
    return number % tensor.dim()


def write_part(tensor: torch.Tensor, number: int) -> torch.Tensor:
    tensor.select(dim(tensor, number), 0).mul_(0.5)
    return tensor


def write_item(tensor: torch.Tensor, number: int) -> torch.Tensor:
    tensor[..., number % tensor.size(-1)] = float(number)
    return tensor


def without_gradient(tensor: torch.Tensor, number: int) -> torch.Tensor:
    with torch.no_grad():
        weight = tensor.abs() + number
    return tensor * weight


def padded(tensor: torch.Tensor, number: int) -> torch.Tensor:
    where = dim(tensor, number)
    return torch.cat([tensor, constant(tensor.shape, number)], where)


LINKS: dict[str, Link] = {
    "view": lambda t, k: t.view(t.shape) if t.is_contiguous() else t.reshape(t.shape),
    "flatten": lambda t, k: t.flatten(0, 1).unsqueeze(k % 3),
    "turn": lambda t, k: t.reshape(t.shape[::-1]),
    "transpose": lambda t, k: t.transpose(dim(t, k), dim(t, k + 1)),
    "permute": lambda t, k: t.permute(*[(one + k) % t.dim() for one in range(t.dim())]),
    "softmax": lambda t, k: t.softmax(dim(t, k)),
    "log_softmax": lambda t, k: F.log_softmax(t, dim(t, k)),
    "mask": lambda t, k: t.masked_fill(constant(t.shape, k) > 0, -1.0),
    "where": lambda t, k: torch.where(t > 0, t, constant(t.shape, k)),
    "slice": lambda t, k: t[: 1 + k % t.size(0)],
    "every second": lambda t, k: t[..., ::2],
    "one": lambda t, k: t.select(dim(t, k), -1).unsqueeze(dim(t, k)),
    "index": lambda t, k: t[torch.arange(t.size(0)).flip(0)],
    "add in place": lambda t, k: t.add_(k),
    "scale in place": lambda t, k: t.mul_(constant(t.shape, k)),
    "clamp in place": lambda t, k: t.clamp_(-1 - k, 1 + k),
    "write a part": write_part,
    "write an item": write_item,
    "cat": padded,
    "stack": lambda t, k: torch.stack([t, t * k]).sum(0),
    "mean": lambda t, k: t.mean(dim(t, k), keepdim=True),
    "sum": lambda t, k: t.sum(dim(t, k), keepdim=True),
    "subtract": lambda t, k: t - constant(t.shape, k),
    "no gradient": without_gradient,
    "detach": lambda t, k: t + t.detach(),
    "sort": lambda t, k: t.sort(dim(t, k)).values,
    "matmul": lambda t, k: t @ constant(torch.Size((t.size(-1), 2)), k),
}


def played(chain: Chain, output: torch.Tensor) -> torch.Tensor:
    """What the script does: later operations may take any tensor so far, and the loss all."""
    made = [output]
    for name, which, number in chain:
        made.append(LINKS[name](made[which % len(made)], number))
    losses = [tensor.mean() for tensor in made]
    return torch.stack(losses).sum() + made[-1].pow(2).sum()


def recorded(chain: Chain, output: torch.Tensor) -> tuple[Passage, torch.Tensor]:
    recording = Recording(output, (), {})
    calls = EveryCall(recording.seen)
    calls.put_on()
    try:
        loss = played(chain, output)
    finally:
        assert calls.remove()
    passage = passage_of(recording, [loss])
    recording.let_go()
    return passage, loss.detach()


def made_by(seed: int) -> torch.Tensor:
    torch.manual_seed(seed)
    made: torch.Tensor = nn.Linear(5, SHAPE[-1])(torch.randn(*SHAPE[:2], 5))
    return made


def copied(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.detach().clone()


chains = st.lists(
    st.tuples(st.sampled_from(sorted(LINKS)), st.integers(0, 9), st.integers(0, 5)),
    min_size=1,
    max_size=8,
)


def bits(tensor: torch.Tensor) -> int:
    """NaN is not equal to itself, and these are."""
    return int(tensor.view(torch.int32))


@settings(max_examples=150, deadline=None)
@given(chains)
def test_a_replay_does_what_the_script_does(chain: Chain) -> None:
    output = made_by(0)
    before, other = copied(output), copied(made_by(1))
    passage, loss = recorded(chain, output)
    assert passage.problem == ""
    assert passage.numbers_used == ""
    expected = played(chain, copied(other))
    for _ in range(2):  # nothing that it keeps is written to
        assert bits(passage.replay(copied(before)).loss) == bits(loss)
        assert bits(passage.replay(copied(other)).loss) == bits(expected)


@settings(max_examples=50, deadline=None)
@given(chains)
def test_gradients_of_a_replay_are_those_of_the_script(chain: Chain) -> None:
    def gradient(play: Callable[[torch.Tensor], torch.Tensor]) -> torch.Tensor | None:
        leaf = copied(made_by(0)).requires_grad_()
        try:
            return torch.autograd.grad(play(leaf * 1), leaf)[0]
        except RuntimeError:  # what backward needs was written to: for both alike
            return None

    passage, _ = recorded(chain, made_by(0))
    theirs = gradient(lambda output: played(chain, output))
    mine = gradient(lambda output: passage.replay(output, grad=True).loss)
    assert (mine is None) == (theirs is None)
    if mine is not None and theirs is not None:
        torch.testing.assert_close(mine, theirs, rtol=0, atol=0, equal_nan=True)
