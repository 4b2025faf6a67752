"""What can be read of one call, and the error where it cannot."""

import gc
import weakref

import pytest
import torch

from nethook.errors import NoGradientError, NotAskedError, NotRunError, SeveralCallsError
from nethook.hooks.autograd.gradients import Sink
from nethook.hooks.autograd.nodes import HeldNode
from nethook.tracing.tape.call import Call
from nethook.tracing.tape.entry import Gradients, outline
from tests.tracing.asked import state

ONE = torch.ones(2)


def call(fields, index=0, only=True, **asked):
    return Call(state(**asked), "fc", fields, index, only=only)


def arrived(*passes):
    """Gradients of one tensor, one for each backward pass."""
    sink = Sink(torch.Tensor.clone)
    sink.passes.update({number: {0: grad} for number, grad in enumerate(passes)})
    return Gradients(sink, outline(ONE))


def test_values_are_read_as_they_were_written():
    one = call((3, ONE, ((ONE, 7), {"k": ONE})), inputs=True)
    assert one.forward == 3
    assert one.output is ONE
    assert one.args == (ONE, 7)
    assert one.kwargs == {"k": ONE}
    assert one.input is ONE
    assert call((0, None, ((), {"k": 5})), inputs=True).input == 5


@pytest.mark.parametrize(
    ("quantity", "text"),
    [
        ("input", "the inputs of 'fc' were not recorded: trace with inputs=True."),
        ("grad", "the gradients of 'fc' were not recorded: trace with grads=True."),
        (
            "input_grads",
            "the input gradients of 'fc' were not recorded: trace with input_grads=True.",
        ),
        ("node", "the autograd nodes of 'fc' were not recorded: trace with nodes=True."),
    ],
)
def test_what_was_not_asked_for_names_the_option(quantity, text):
    with pytest.raises(NotAskedError) as error:
        getattr(call((0, ONE)), quantity)
    assert str(error.value) == text


def test_a_call_that_raised_has_arguments_and_no_output():
    raised = call((0, None, ((ONE,), None), None, None, False), inputs=True)
    assert raised.args == (ONE,)
    assert raised.kwargs == {}
    assert raised.shape == "raised"
    with pytest.raises(NotRunError, match=r"'fc' raised an exception before it returned; \.args"):
        raised.output
    with pytest.raises(NotRunError, match="'fc' was called without arguments"):
        call((0, None, ((), {})), inputs=True).input


def test_gradients_of_one_pass_are_one_and_of_several_a_list():
    assert call((0, ONE, None, arrived(ONE)), grads=True).grad.tolist() == [1, 1]
    several = call((0, ONE, None, arrived(ONE, 2 * ONE)), grads=True)
    assert [grad.tolist() for grad in several.grads] == [[1, 1], [2, 2]]
    with pytest.raises(SeveralCallsError, match=r"arrived in 2 backward passes: read \.grads\[i\]"):
        several.grad


def test_why_there_is_no_gradient():
    for fields, said in (
        ((0, ONE), "did not require a gradient when it ran"),
        ((0, "text"), "holds no tensor that can be addressed: it is a str"),
        ((0, ONE, None, arrived()), "no gradient has arrived at the output of 'fc'"),
    ):
        with pytest.raises(NoGradientError, match=said):
            call(fields, grads=True).grad
    with pytest.raises(NoGradientError, match="the inputs of 'fc' did not require a gradient"):
        call((0, ONE), input_grads=True).input_grads


def test_nodes_stand_in_the_place_of_tensors():
    made = torch.ones(1, requires_grad=True) * 2
    fields = (0, None, None, None, None, True, (HeldNode(made), None))
    assert call(fields, nodes=True).node == (made.grad_fn, None)
    with pytest.raises(NoGradientError, match="no autograd node made the output of 'fc'"):
        call((0, ONE), nodes=True).node


def test_one_of_several_calls_is_named_by_its_number():
    third = call((1, ONE), index=2, only=False)
    assert repr(third) == "<call 2 of 'fc', forward 1: (2,)>"
    assert repr(call((None, (ONE, ONE)))) == "<call 0 of 'fc': (2,), (2,)>"
    with pytest.raises(NoGradientError, match=r"the output of 'fc' \(call 2\) did not require"):
        call((1, ONE), index=2, only=False, grads=True).grads


def test_a_call_holds_no_more_than_itself():
    kept, other = torch.ones(3), torch.ones(3)
    gone = weakref.ref(other)
    entries = [(0, kept), (1, other)]
    one = call(entries[0])
    del entries, other
    gc.collect()
    assert gone() is None
    assert one.output is kept
