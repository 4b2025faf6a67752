"""Our own torch calls are seen by no mode and no tensor subclass of the user's."""

from typing import ClassVar

import pytest
import torch
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode

import nethook
from nethook.hooks.modes import modes_are_active, quiet, unnoticed, unrecorded
from tests.hooks.common import net


class Functions(TorchFunctionMode):
    def __init__(self) -> None:
        super().__init__()
        self.seen: list[str] = []

    def __torch_function__(self, func, types, args=(), kwargs=None):
        self.seen.append(func.__name__)
        return func(*args, **(kwargs or {}))


class Dispatches(TorchDispatchMode):
    def __init__(self) -> None:
        super().__init__()
        self.seen: list[str] = []

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        self.seen.append(str(func))
        return func(*args, **(kwargs or {}))


class Loud(torch.Tensor):
    seen: ClassVar[list[str]] = []

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        cls.seen.append(func.__name__)
        return super().__torch_function__(func, types, args, kwargs)


@pytest.mark.parametrize("mode", [Functions, Dispatches])
def test_a_mode_sees_nothing_inside_and_everything_around(mode):
    x = torch.ones(2)
    with mode() as modes:
        x.add(1)
        seen = len(modes.seen)
        assert seen > 0
        with quiet():
            x.add(1)
            with quiet():
                x.add(1)
            x.add(1)
        assert len(modes.seen) == seen
        x.add(1)
        assert len(modes.seen) == 2 * seen


@pytest.mark.parametrize("mode", [Functions, Dispatches])
def test_modes_are_back_at_the_end_of_the_block_and_not_only_when_it_is_forgotten(mode):
    silence = quiet()
    with mode() as modes:
        with silence:
            pass
        torch.ones(2)
        assert modes.seen


def test_both_kinds_of_mode_at_once():
    x = torch.ones(2)
    with Functions() as functions, Dispatches() as dispatches:
        with quiet():
            x.add(1)
        assert functions.seen == dispatches.seen == []
        x.add(1)
        assert functions.seen
        assert dispatches.seen


def test_a_subclass_sees_nothing_inside():
    x = torch.ones(2).as_subclass(Loud)
    Loud.seen.clear()
    with quiet():
        x.add(1)
    assert Loud.seen == []
    x.add(1)
    assert Loud.seen == ["add"]


@pytest.mark.parametrize("mode", [Functions, Dispatches])
def test_modes_are_back_after_an_exception(mode):
    error = KeyError("mine")
    with mode() as modes:
        with pytest.raises(KeyError) as raised, quiet():
            raise error
        assert raised.value is error
        torch.ones(2).add(1)
        assert modes.seen
    assert not modes_are_active()


def test_whether_a_mode_is_active():
    assert not modes_are_active()
    with Functions():
        assert modes_are_active()
    with Dispatches():
        assert modes_are_active()
    assert not modes_are_active()


@pytest.mark.parametrize("mode", [Functions, Dispatches])
def test_a_mode_sees_the_same_calls_with_a_trace_as_without(mode):
    def run() -> list[str]:
        model = net()
        x = torch.ones(1, 4, requires_grad=True)
        with mode() as modes:
            model(x).sum().backward()
        return modes.seen

    def traced() -> list[str]:
        model = net()
        x = torch.ones(1, 4, requires_grad=True)
        with (
            nethook.trace(model, inputs=True, grads=True, input_grads=True, param_grads=True),
            mode() as modes,
        ):
            model(x).sum().backward()
        return modes.seen

    assert traced() == run()


@pytest.mark.parametrize(
    ("make", "kind"),
    [
        (lambda: torch.ones(2).as_subclass(Loud), Loud),
        (lambda: torch.ones(2), torch.Tensor),
        (lambda: torch.nn.Parameter(torch.ones(2)), torch.Tensor),
    ],
)
def test_what_is_made_unnoticed_is_of_the_class_of_the_tensor(make, kind):
    tensor = make()
    Loud.seen.clear()
    made = unnoticed(lambda given: given.detach() + 1, tensor)
    assert Loud.seen == []
    assert type(made) is kind
    assert torch.equal(made.as_subclass(torch.Tensor), torch.full((2,), 2.0))


def test_what_is_made_unnoticed_may_be_anything():
    tensor = torch.ones(2).as_subclass(Loud)
    assert unnoticed(lambda given: given._version, tensor) == 0
    kept = [tensor]
    assert unnoticed(lambda given: kept, tensor) is kept
    other = torch.nn.Parameter(torch.ones(3))
    assert unnoticed(lambda given: other, tensor) is other


@pytest.mark.parametrize("on", [True, False])
@pytest.mark.parametrize("mode", [Functions, Dispatches])
def test_what_is_unrecorded_is_seen_by_nobody_and_has_no_gradient(mode, on):
    x = torch.ones(2, requires_grad=True)
    with mode() as modes, torch.set_grad_enabled(on):
        modes.seen.clear()
        made = unrecorded(torch.mul)(x, 2)
        assert modes.seen == []
        assert torch.is_grad_enabled() is on
        assert (x * 2).requires_grad is on
        assert modes.seen
    assert not made.requires_grad


def test_gradients_are_back_after_an_exception():
    def fail() -> None:
        raise KeyError

    with pytest.raises(KeyError):
        unrecorded(fail)()
    assert torch.is_grad_enabled()
    assert not torch._C._is_torch_function_all_disabled()
