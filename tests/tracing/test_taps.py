"""The hooks of a trace, one by one: what each writes into its record."""

import pytest
import torch
from torch import nn

from nethook.hooks.hook import Owner
from nethook.tracing.tape.entry import Entry
from nethook.tracing.tape.record import ParameterRecord, Record
from nethook.tracing.taps import (
    RECOMPUTED,
    TRANSFORMED,
    CallTap,
    ForwardBegins,
    ForwardEnds,
    InputTap,
    OutputTap,
    ParameterTap,
    Unfinished,
    begin,
    finish,
    gradients,
    held_nodes,
)
from tests.tracing.asked import state

LINEAR = nn.Linear(2, 2)
CLONED = state(copy="now").options.keep()


def record_of(state):
    return Record(state, "fc", ("fc",), "Linear")


@pytest.fixture
def owner():
    return Owner("test")


def test_an_output_is_written_with_its_forward(owner):
    record = record_of(state())
    record.state.forward = 3
    tap = OutputTap(owner, record, record.entries.append, CLONED)
    assert tap(LINEAR, (), torch.ones(2)) is None
    tap(LINEAR, (), (torch.zeros(1), "text"))
    forward, output = record.entries[0]
    assert (forward, output.tolist()) == (3, [1, 1])
    assert record.entries[1][1][1] == "text"


def test_a_call_inside_a_transform_or_a_backward_pass_is_skipped_and_says_why(owner):
    record = record_of(state())
    tap = OutputTap(owner, record, record.entries.append, CLONED)
    torch.vmap(lambda x: (tap(LINEAR, (), x), x)[1])(torch.ones(2))
    assert (record.entries, record.skipped) == ([], TRANSFORMED)
    leaf = torch.ones(1, requires_grad=True)
    doubled = leaf * 2
    doubled.register_hook(lambda grad: tap(LINEAR, (), grad))
    doubled.backward()
    assert (record.entries, record.skipped) == ([], RECOMPUTED)


def test_a_call_is_what_was_known_when_it_began_and_when_it_returned(owner):
    record = record_of(state(inputs=True))
    before = InputTap(owner, record, torch.Tensor.clone)
    after = CallTap(owner, record, record.entries.append, CLONED, None, before)
    x = torch.zeros(2)
    record.state.forward = 0
    before(LINEAR, (x,), {"scale": 2})
    x.add_(5)
    record.state.forward = 1  # the model was called again inside this call
    after(LINEAR, (x,), {"scale": 2}, x)
    entry = Entry(*record.entries[0])
    assert (entry.forward, entry.returned) == (0, True)
    assert entry.inputs[0][0].tolist() == [0, 0]
    assert entry.inputs[1] == {"scale": 2}
    assert entry.output.tolist() == [5, 5]


def test_a_call_that_never_returns_is_written_as_raised(owner):
    record = record_of(state(inputs=True))
    before = InputTap(owner, record, torch.Tensor.clone)
    unfinished = Unfinished()
    unfinished.add(before, record.entries.append)
    before(LINEAR, (torch.ones(1),), {})
    before(LINEAR, (torch.ones(2),))  # a global hook is not told of keyword arguments
    unfinished.give_up()
    assert [Entry(*fields).returned for fields in record.entries] == [False, False]
    assert record.calls[1].kwargs == {}
    assert record.calls[1].shape == "raised"
    unfinished.give_up(every=True)
    assert len(record.entries) == 2


def test_keyword_arguments_that_come_only_at_the_end_are_kept_then(owner):
    asked = state(inputs=True, input_grads=True)
    tap = InputTap(owner, record_of(asked), torch.Tensor.clone)
    x = torch.ones(2, requires_grad=True)
    begun = begin(tap, asked, torch.Tensor.clone, (x,), None)
    assert begun.inputs[1] is None
    done = finish(tap, asked, torch.Tensor.clone, begun, (x,), {"k": x * 2}, x * 3)
    assert done.inputs[1]["k"].tolist() == [2, 2]
    assert done.input_grads is not None


def test_nodes_have_numbers_between_begin_and_end(owner):
    asked = state(nodes=True)
    tap = InputTap(owner, record_of(asked), torch.Tensor.clone)
    x = torch.ones(2, requires_grad=True)
    begun = begin(tap, asked, torch.Tensor.clone, (x,), {})
    assert begun.end == 0
    y = x * 2
    done = finish(tap, asked, torch.Tensor.clone, begun, (x,), {}, (y, torch.ones(1)))
    assert done.end - done.begin == 1  # one multiplication
    assert done.nodes[0].node is y.grad_fn
    assert done.nodes[1] is None
    assert held_nodes({"n": 3, "y": y})["n"] == 3


def test_gradients_are_asked_for_where_a_tensor_requires_one(owner):
    tap = InputTap(owner, record_of(state()), torch.Tensor.clone)
    assert gradients(tap, torch.Tensor.clone, (torch.ones(2), "text")) is None
    y = torch.ones(2, requires_grad=True) * 2
    asked = gradients(tap, torch.Tensor.clone, [torch.ones(1), y])
    (3 * y).sum().backward()
    ((none, grad),) = asked.passes()
    assert none is None
    assert grad.tolist() == [3, 3]


def test_forwards_are_counted_once_where_a_model_calls_itself(owner):
    asked = state()
    begins = ForwardBegins(owner, asked, Unfinished(), may_nest=True)
    ends = ForwardEnds(owner, asked, None)
    begins(LINEAR, (torch.ones(1, 2),))
    begins(LINEAR, (torch.ones(1, 2),))
    assert (asked.forwards, asked.depth, asked.forward) == (1, 2, 0)
    ends(LINEAR, (), None)
    assert asked.forward == 0
    ends(LINEAR, (), None)
    assert asked.forward is None
    begins(LINEAR, (torch.ones(1, 2),))
    assert asked.forward == 1


def test_the_gradient_of_a_parameter_is_kept_at_every_pass(owner):
    record = ParameterRecord("weight", ("weight",), requires_grad=True)
    tap = ParameterTap(owner, record, torch.Tensor.clone)
    grad = torch.ones(2)
    tap(grad)
    grad.zero_()
    tap(grad)
    assert [kept.tolist() for kept in record.grads] == [[1, 1], [0, 0]]
