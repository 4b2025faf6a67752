"""Wrapping torch functions: in any order, below and above others, and gone without a trace."""

import functools
import gc
import sys
import warnings
import weakref
from contextlib import suppress

import pytest
import torch

import nethook
from nethook.hooks.attachment import Attachment
from nethook.hooks.hook import Hook, Owner
from nethook.hooks.wrapped import Stub, WrappedFunction, wrapped_functions
from tests.hooks.common import net

BACKWARD = torch.autograd.backward


class Note(Hook):
    """A wrapper that writes down when it was entered and left."""

    def __init__(self, name: str, notes: list[str]) -> None:
        super().__init__(Owner(f"nethook.{name}"), name)
        self.notes = notes

    def __call__(self, call, *args, **kwargs):
        self.notes.append(self.address)
        result = call(*args, **kwargs)
        self.notes.append(f"/{self.address}")
        return result


def wrap(name: str, notes: list[str]) -> WrappedFunction:
    return WrappedFunction("torch.autograd", "backward", Note(name, notes))


@pytest.fixture(autouse=True)
def _as_it_was():
    yield
    left, torch.autograd.backward = torch.autograd.backward, BACKWARD
    assert left is BACKWARD


def backward() -> float:
    x = torch.ones(1, requires_grad=True)
    (x * 3).sum().backward()
    return x.grad.item()


def test_the_latest_wrapper_is_the_outermost_and_the_call_is_the_same():
    notes: list[str] = []
    handles = [wrap("a", notes), wrap("b", notes)]
    assert backward() == 3.0
    assert notes == ["b", "a", "/a", "/b"]
    for handle in handles:
        handle.remove()
    assert torch.autograd.backward is BACKWARD


@pytest.mark.parametrize("order", [(0, 1, 2), (2, 1, 0), (1, 0, 2), (1, 2, 0)])
def test_wrappers_come_off_in_any_order(order):
    notes: list[str] = []
    handles = [wrap(name, notes) for name in "abc"]
    left = list("abc")
    for at in order:
        handles[at].remove()
        handles[at].remove()  # does nothing more
        left.remove("abc"[at])
        notes.clear()
        assert backward() == 3.0
        assert notes == [*reversed(left), *(f"/{name}" for name in left)]
    assert torch.autograd.backward is BACKWARD


def test_what_the_function_returns_and_raises_passes_through():
    notes: list[str] = []
    handle = wrap("a", notes)
    with pytest.raises(RuntimeError, match="does not require grad"):
        torch.ones(1).sum().backward()
    assert torch.autograd.backward.__name__ == "backward"
    assert torch.autograd.backward.__doc__ == BACKWARD.__doc__
    assert torch.autograd.backward.__wrapped__ is BACKWARD
    handle.remove()

    stub = Stub(lambda *args, **kwargs: (args, kwargs))
    stub.wrappers.append(Note("a", notes))
    assert stub.placed(1, key=2) == ((1,), {"key": 2})


def test_the_same_wrapper_may_be_on_twice_and_comes_off_once():
    notes: list[str] = []
    note = Note("a", notes)
    first = WrappedFunction("torch.autograd", "backward", note)
    second = WrappedFunction("torch.autograd", "backward", note)
    backward()
    assert notes == ["a", "a", "/a", "/a"]
    first.remove()
    notes.clear()
    backward()
    assert notes == ["a", "/a"]
    second.remove()


def test_wrappers_that_come_off_during_a_call_are_still_left():
    notes: list[str] = []

    class Leave(Note):
        def __call__(self, call, *args, **kwargs):
            outer.remove()
            inner.remove()
            return super().__call__(call, *args, **kwargs)

    inner = wrap("inner", notes)
    outer = WrappedFunction("torch.autograd", "backward", Leave("outer", notes))
    assert backward() == 3.0
    assert notes == ["outer", "inner", "/inner", "/outer"]


def test_someone_who_wraps_over_ours_keeps_his_wrapper():
    notes: list[str] = []
    ours = wrap("a", notes)
    below = torch.autograd.backward

    @functools.wraps(below)
    def theirs(*args, **kwargs):
        notes.append("theirs")
        return below(*args, **kwargs)

    torch.autograd.backward = theirs
    assert backward() == 3.0
    assert notes == ["theirs", "a", "/a"]
    assert [name for name, _ in wrapped_functions()] == ["torch.autograd.backward"]
    ours.remove()
    assert torch.autograd.backward is theirs
    assert list(wrapped_functions()) == []
    notes.clear()
    assert backward() == 3.0
    assert notes == ["theirs"]
    # What was left below theirs is taken up again, and is gone at the end.
    torch.autograd.backward = below
    again = wrap("b", notes)
    assert torch.autograd.backward is below
    again.remove()


def test_ours_may_stand_above_theirs_and_below_at_once():
    notes: list[str] = []
    low = wrap("low", notes)
    below = torch.autograd.backward

    def theirs(*args, **kwargs):
        notes.append("theirs")
        return below(*args, **kwargs)

    torch.autograd.backward = theirs
    high = wrap("high", notes)
    assert backward() == 3.0
    assert notes == ["high", "theirs", "low", "/low", "/high"]
    assert [hook.address for _, hook in wrapped_functions()] == ["low", "high"]
    low.remove()
    assert [hook.address for _, hook in wrapped_functions()] == ["high"]
    high.remove()
    assert torch.autograd.backward is theirs
    torch.autograd.backward = BACKWARD


def test_wrappers_that_came_after_someone_who_has_left_again():
    notes: list[str] = []
    torch.autograd.backward = theirs = lambda *args, **kwargs: BACKWARD(*args, **kwargs)
    handle = wrap("a", notes)
    handle.remove()
    assert torch.autograd.backward is theirs
    torch.autograd.backward = BACKWARD


def test_audit_lists_wrapped_functions_by_owner():
    notes: list[str] = []
    model = net()
    before = nethook.audit(model)
    handles = [wrap("a", notes), wrap("b", notes)]
    during = nethook.audit(model)
    assert [(info.address, info.kind, info.owner, info.ours) for info in during] == [
        ("torch.autograd.backward", "function", "nethook.a", True),
        ("torch.autograd.backward", "function", "nethook.b", True),
    ]
    assert during != before
    for handle in handles:
        handle.remove()
    assert nethook.audit(model) == before


def test_a_wrapper_belongs_to_an_attachment_like_any_hook():
    notes: list[str] = []
    with suppress(KeyError), Attachment(Owner("nethook.test")) as hooks:
        hooks.add(wrap("a", notes))
        backward()
        raise KeyError
    assert notes == ["a", "/a"]
    assert torch.autograd.backward is BACKWARD


class Holder:
    """A class whose functions are wrapped."""

    @staticmethod
    def plain(a, *, b=0):
        return a, b

    def method(self, a, *, b=0):
        return self, a, b

    @staticmethod
    def warns():
        warnings.warn("look where you call me", UserWarning, stacklevel=2)


@pytest.mark.parametrize("times", [1, 2])
def test_static_functions_and_methods_are_called_as_ever(times):
    notes: list[str] = []
    kept = dict(vars(Holder))
    handles = [
        WrappedFunction(Holder, name, Note("a", notes))
        for name in ("plain", "method")
        for _ in range(times)
    ]
    assert handles[0].function == f"{__name__}.Holder.plain"
    one = Holder()
    assert Holder.plain(1, b=2) == one.plain(1, b=2) == (1, 2)
    assert one.method(1, b=2) == Holder.method(one, 1, b=2) == (one, 1, 2)
    assert notes == (["a"] * times + ["/a"] * times) * 4
    for handle in handles:
        handle.remove()
    assert dict(vars(Holder)) == kept


def test_a_class_may_be_given_by_its_name():
    notes: list[str] = []
    handle = WrappedFunction("torch.Tensor", "backward", Note("a", notes))
    assert handle.function == "torch.Tensor.backward"
    assert backward() == 3.0
    assert notes == ["a", "/a"]
    handle.remove()


def test_put_on_again_it_wraps_what_is_there_now():
    notes: list[str] = []
    handle = wrap("a", notes)
    stub = torch.autograd.backward
    handle.remove()
    handle.put_on()
    assert torch.autograd.backward is stub  # making another costs more than all the rest
    handle.remove()

    def theirs(*args, **kwargs):
        notes.append("theirs")
        return BACKWARD(*args, **kwargs)

    torch.autograd.backward = theirs
    handle.put_on()
    assert backward() == 3.0
    assert notes == ["a", "theirs", "/a"]
    handle.remove()
    assert torch.autograd.backward is theirs
    torch.autograd.backward = BACKWARD


def test_a_warning_names_the_line_that_called_the_function():
    class Passes(Note):
        """A wrapper whose `__call__` nobody has hidden yet."""

        def __call__(self, call, *args, **kwargs):
            return call(*args, **kwargs)

    handle = WrappedFunction(Holder, "warns", Passes("a", []))
    with pytest.warns(UserWarning, match="look where") as found:
        Holder.warns()
    line = sys._getframe().f_lineno - 1
    handle.remove()
    assert [(each.filename, each.lineno) for each in found] == [(__file__, line)]


def test_a_stub_serves_again_and_holds_no_wrapper():
    notes: list[str] = []
    first = wrap("a", notes)
    stub = torch.autograd.backward
    gone = weakref.ref(first.wrapper)
    first.remove()
    del first
    gc.collect()
    assert gone() is None
    second = wrap("b", notes)
    assert torch.autograd.backward is stub
    assert backward() == 3.0
    second.remove()
    assert notes == ["b", "/b"]


def test_where_others_have_put_a_function_there_meanwhile_a_new_stub_stands_for_theirs():
    notes: list[str] = []
    wrap("a", notes).remove()

    def theirs(*args, **kwargs):
        notes.append("theirs")
        return BACKWARD(*args, **kwargs)

    torch.autograd.backward = theirs
    handle = wrap("b", notes)
    assert backward() == 3.0
    assert notes == ["b", "theirs", "/b"]
    handle.remove()
    assert torch.autograd.backward is theirs
    torch.autograd.backward = BACKWARD


def test_a_method_of_a_base_class_is_wrapped_for_one_class_alone():
    class Base:
        def call(self) -> str:
            return "called"

    class Derived(Base):
        pass

    notes: list[str] = []
    handle = WrappedFunction(Derived, "call", Note("a", notes))
    assert (Base().call(), notes) == ("called", [])
    assert (Derived().call(), notes) == ("called", ["a", "/a"])
    handle.remove()
    assert "call" not in vars(Derived)
    handle.put_on()
    assert Derived().call() == "called"
    assert len(notes) == 4
    handle.remove()
    assert "call" not in vars(Derived)
