"""What a tape holds of one address: calls, those that were dropped, and why there may be none."""

import gc
import weakref

import pytest
import torch

from nethook.addresses.op_addresses import OpPattern
from nethook.errors import NoGradientError, NotRunError, SeveralCallsError
from nethook.tracing.tape.record import OpName, ParameterRecord, Record
from tests.tracing.asked import state


def record(op=None, **asked):
    return Record(state(**asked), "fc", ("fc", "same"), "op" if op else "Linear", op)


def filled(*outputs, most=None, **asked):
    one = record(**asked)
    add = one.writer(most)
    for number, output in enumerate(outputs):
        add((number, output))
    return one


def test_the_only_call_is_read_from_the_record_itself():
    one = filled(torch.ones(2))
    assert one.output is one.last.output is one.calls[0].output
    assert one.forward == 0
    assert repr(one) == "<record 'fc' (Linear): 1 call, last (2,)>"


def test_of_several_calls_none_is_taken_in_silence_also_where_nothing_was_asked_for():
    one = filled(1, 2)
    for quantity in ("output", "input", "grad", "input_grads", "node", "forward"):
        with pytest.raises(SeveralCallsError, match="'fc' was called 2 times"):
            getattr(one, quantity)
    assert one.last.output == 2


def test_calls_that_were_dropped_are_counted_and_keep_their_numbers():
    one = filled(*"abcde", most=2, calls=2)
    assert (one.total, len(one.calls)) == (5, 2)
    assert [(call.index, call.output) for call in one.calls] == [(3, "d"), (4, "e")]
    with pytest.raises(IndexError, match=r"call 2 of 'fc' was asked for, and 2 are kept of 5 \(ca"):
        one.calls[2]
    one.clear()
    assert (one.total, len(one.calls)) == (0, 0)
    assert filled("a", "b", most=1).last.index == 1


def test_calls_are_a_sequence_that_can_be_sliced():
    calls = filled(*"abc").calls
    assert [call.output for call in calls] == ["a", "b", "c"]
    assert [call.output for call in calls[::-2]] == ["c", "a"]
    assert calls[-3].index == 0
    with pytest.raises(IndexError, match=r"call -4 of 'fc' was asked for, and 3 are kept\."):
        calls[-4]


def test_calls_of_a_generation_are_told_apart():
    one = record()
    for number, tokens in enumerate((4, 1, 1)):
        one.state.begin_forward(((torch.zeros(1, tokens),),))
        one.entries.append((number, tokens))
    assert [call.output for call in one.calls.prompt] == [4]
    assert [call.step for call in one.calls.decode] == [1, 2]
    assert one.calls.decode[1].index == 2
    with pytest.raises(IndexError, match="and 1 are here"):
        one.calls.prompt[1]
    one.entries.clear()
    one.entries.append((None, 3))  # a module that was called on its own
    assert len(one.calls.prompt) == 0
    with pytest.raises(NotRunError, match="none of the 1 calls of 'fc' is among these"):
        one.calls.prompt.stack()


def test_calls_are_joined_as_torch_joins_them():
    outputs = [torch.randn(2, 3, generator=torch.Generator().manual_seed(k)) for k in range(3)]
    calls = filled(*outputs).calls
    assert torch.equal(calls.stack(1), torch.stack(outputs, 1))
    assert torch.equal(calls.cat(1), torch.cat(outputs, 1))
    nested = filled(*[{"x": output} for output in outputs]).calls
    assert torch.equal(nested.cat()["x"], torch.cat(outputs))
    with pytest.raises(SeveralCallsError, match=r"shapes \(2,\), \(3,\), which cannot be joined"):
        filled(torch.ones(2), torch.ones(3)).calls.stack()


def test_why_a_site_has_no_call():
    one = record()
    one.why = "its parent calls it by hand."
    with pytest.raises(NotRunError, match=r"'fc' has not been called: its parent"):
        one.last
    one.state.stopped_at = "conv"
    with pytest.raises(NotRunError, match=r"'fc' was not reached: stop=True .* after 'conv'"):
        one.output
    one.skipped = "in a transform"
    with pytest.raises(NotRunError, match=r"'fc' was called, but in a transform\."):
        one.calls[0]
    with pytest.raises(NotRunError, match="has not been called in this scope, nor has the model"):
        record().output


def test_a_record_is_one_of_an_operation_where_it_has_the_name_of_one():
    name = OpName(("fc", "same"), "relu", 1)
    one = Record(state(), "fc/relu#1", ("fc/relu#1",), "op", name)
    for text, meant in (("fc/relu", True), ("same/relu#1", True), ("fc/relu#0", False)):
        assert one.op.is_meant_by(OpPattern(text)) == meant
    with pytest.raises(NotRunError, match="'fc/relu#1' has not run in this scope"):
        one.output
    assert record().op is None


def test_a_record_that_was_read_is_gone_as_soon_as_nobody_holds_it():
    one = filled(torch.ones(2))
    call, gone = one.last, weakref.ref(one)
    gc.disable()
    try:
        del one
        assert gone() is None
        assert call.output.shape == (2,)
    finally:
        gc.enable()


def test_gradients_of_a_parameter_or_why_there_are_none():
    one = ParameterRecord("fc.weight", ("fc.weight",), requires_grad=True)
    with pytest.raises(NoGradientError, match=r"arrived at 'fc\.weight' in this scope"):
        one.grad
    one.why = "it is spread over ranks"
    with pytest.raises(NoGradientError, match="can be recorded: it is spread over ranks"):
        one.grads
    one.kept += [torch.ones(1), torch.zeros(1)]
    assert [grad.item() for grad in one.grads] == [1, 0]
    assert repr(one) == "<gradients of 'fc.weight': 2 backward passes>"
    with pytest.raises(SeveralCallsError, match="received gradients in 2 backward passes"):
        one.grad
    frozen = ParameterRecord("fc.bias", ("fc.bias",), requires_grad=False)
    with pytest.raises(NoGradientError, match=r"'fc\.bias' is frozen"):
        frozen.grad
