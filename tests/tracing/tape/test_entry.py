"""One call as it is written: fields that may be missing, gradients in their outline, stacks."""

import threading

import pytest
import torch

from nethook.hooks.autograd.gradients import Sink
from nethook.tracing.tape.entry import Entry, Gradients, Stack, outline


def test_a_tuple_of_the_first_fields_is_a_call_that_returned():
    entry = Entry(*(2, "kept"))
    assert (entry.forward, entry.output, entry.returned) == (2, "kept", True)
    assert (entry.inputs, entry.grads, entry.input_grads, entry.nodes) == (None,) * 4
    assert (entry.begin, entry.end) == (0, 0)


def test_an_outline_has_the_form_of_a_value_and_nothing_of_it():
    value = {"a": [torch.ones(2), 3], "b": (torch.ones(1), "text")}
    shape = outline(value)
    assert repr(shape) == "{'a': [<tensor>, None], 'b': (<tensor>, None)}"
    assert isinstance(value["a"][0], torch.Tensor)


def test_gradients_come_in_the_outline_once_for_each_backward_pass():
    sink = Sink(torch.Tensor.clone)
    asked = Gradients(sink, outline([torch.ones(1), (torch.ones(1), torch.ones(1))]))
    assert asked.passes() == []
    sink.passes[7] = {0: torch.tensor([1.0]), 2: torch.tensor([3.0])}
    sink.passes[9] = {1: torch.tensor([2.0])}
    first, second = asked.passes()
    assert (first[0].item(), first[1][0], first[1][1].item()) == (1, None, 3)
    assert (second[0], second[1][0].item(), second[1][1]) == (None, 2, None)


def test_the_innermost_call_ends_first():
    stack = Stack()
    assert not stack
    stack.append("outer")
    stack.append("inner")
    assert stack
    assert [stack.pop(), stack.pop()] == ["inner", "outer"]
    assert not stack
    with pytest.raises(IndexError):
        stack.pop()


def test_threads_have_stacks_of_their_own():
    stack = Stack()
    stack.append("here")
    seen = []

    def run():
        seen.append(bool(stack))
        stack.append("there")
        seen.append(stack.take())
        stack.append("left")

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    assert seen == [False, ["there"]]
    assert sorted(stack.take(every=True)) == ["here", "left"]
    assert stack.take(every=True) == []
