"""Reading a tape: by any name, call by call, and with an error that says why not."""

import gc
import weakref

import pytest
import torch
from torch import nn

import nethook
from nethook.errors import (
    NoGradientError,
    NoSuchSiteError,
    NotAskedError,
    NotRunError,
    SeveralCallsError,
)


class Twice(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.fc = nn.Linear(3, 3)
        self.same = self.fc
        self.unused = nn.Linear(3, 3)

    def forward(self, x):
        return self.same(torch.tanh(self.fc(x)))


@pytest.fixture
def model():
    torch.manual_seed(0)
    return Twice()


@pytest.fixture
def tape(model):
    with nethook.trace(model, grads=True, param_grads=True) as tape:
        model(torch.randn(2, 3)).sum().backward()
    return tape


def test_a_shared_module_is_one_record_that_answers_to_every_name(model, tape):
    assert list(tape) == ["fc", "unused"]
    assert tape["same"] is tape["fc"]
    assert "same" in tape
    assert tape["fc"].names == ("fc", "same")


def test_tied_weights_are_one_parameter_that_answers_to_every_name(tape):
    assert list(tape.params) == ["fc.weight", "fc.bias", "unused.weight", "unused.bias"]
    assert tape.params["same.weight"] is tape.params["fc.weight"]


def test_a_name_with_special_characters_is_read_plainly_or_escaped():
    model = nn.ModuleDict({"a*b/c": nn.Identity()})
    with nethook.trace(model, "a\\*b\\/c") as tape:
        model["a*b/c"](torch.ones(1))
    assert tape["a*b/c"] is tape["a\\*b\\/c"]


def test_an_address_that_was_not_traced_names_the_closest(tape):
    with pytest.raises(NoSuchSiteError, match=r"'unsed' was not traced. Closest: 'unused'"):
        tape["unsed"]
    with pytest.raises(LookupError, match="read by its address, a string; got 3"):
        tape[3]
    assert 3 not in tape
    assert tape.get("nowhere") is None


def test_several_calls_are_never_one_of_them_in_silence(tape):
    for name in ("output", "grad", "grads", "forward"):
        with pytest.raises(SeveralCallsError, match=r"called 2 times: read .calls\[i\]"):
            getattr(tape["fc"], name)
    assert tape["fc"].last.index == 1
    assert tape["fc"].calls[-1].output.shape == (2, 3)


def test_calls_are_a_sequence(tape):
    calls = tape["fc"].calls
    assert len(calls) == 2
    assert [call.index for call in calls] == [0, 1]
    assert [call.index for call in calls[1:]] == [1]
    with pytest.raises(IndexError, match="call 2 of 'fc' was asked for, and 2 are kept"):
        calls[2]


def test_calls_are_stacked_and_joined(tape):
    calls = tape["fc"].calls
    outputs = [call.output for call in calls]
    assert torch.equal(calls.stack(), torch.stack(outputs))
    assert torch.equal(calls.cat(dim=1), torch.cat(outputs, 1))
    assert torch.equal(calls.stack(of="grad"), torch.stack([call.grad for call in calls]))


def test_nested_outputs_are_stacked_part_by_part():
    model = nn.LSTM(2, 3)
    with nethook.trace(model) as tape:
        model(torch.randn(4, 2))
        model(torch.randn(4, 2))
    output, (hidden, cell) = tape[""].calls.stack()
    assert (output.shape, hidden.shape, cell.shape) == ((2, 4, 3), (2, 1, 3), (2, 1, 3))


def test_shapes_that_cannot_be_joined_are_named():
    model = nn.ReLU()
    with nethook.trace(model) as tape:
        model(torch.randn(2, 3))
        model(torch.randn(4, 3))
    with pytest.raises(SeveralCallsError, match=r"shapes \(2, 3\), \(4, 3\)"):
        tape[""].calls.stack()
    assert tape[""].calls.cat().shape == (6, 3)


def test_outputs_of_different_kinds_cannot_be_joined():
    class Either(nn.Module):
        def forward(self, x, both):
            return (x, x) if both else (x,)

    model = Either()
    with nethook.trace(model) as tape:
        model(torch.ones(1), True)
        model(torch.ones(1), False)
    with pytest.raises(SeveralCallsError, match=r"different numbers of tensors \(\[2, 1\]\)"):
        tape[""].calls.stack()


@pytest.mark.parametrize(("calls", "kept"), [("last", [4]), (2, [3, 4]), (9, [0, 1, 2, 3, 4])])
def test_only_the_latest_calls_are_kept_where_that_was_asked(calls, kept):
    model = nn.Identity()
    with nethook.trace(model, calls=calls) as tape:
        for number in range(5):
            model(torch.tensor(float(number)))
    assert [call.index for call in tape[""].calls] == kept
    assert [call.output.item() for call in tape[""].calls] == kept
    assert tape[""].total == 5
    with pytest.raises(SeveralCallsError, match="called 5 times"):
        tape[""].output


def test_a_call_that_was_dropped_is_said_to_be():
    model = nn.Identity()
    with nethook.trace(model, calls="last") as tape:
        for _ in range(3):
            model(torch.ones(1))
    with pytest.raises(IndexError, match=r"1 are kept of 3 \(calls='last'\)"):
        tape[""].calls[1]


def test_what_never_ran_says_so(model, tape):
    with pytest.raises(NotRunError, match=r"'unused' has not been called .* ran 1 times"):
        tape["unused"].output
    with pytest.raises(NotRunError):
        tape["unused"].last
    with pytest.raises(NotRunError):
        tape["unused"].calls.stack()
    with nethook.trace(model, "fc") as empty:
        pass
    with pytest.raises(NotRunError, match="nor has the model"):
        empty["fc"].output


def test_what_was_not_asked_for_names_the_option(model):
    with nethook.trace(model, "unused") as tape:
        model.unused(torch.ones(1, 3))
    record = tape["unused"]
    for name, option in [
        ("input", "inputs=True"),
        ("args", "inputs=True"),
        ("kwargs", "inputs=True"),
        ("grad", "grads=True"),
        ("grads", "grads=True"),
        ("input_grads", "input_grads=True"),
    ]:
        with pytest.raises(NotAskedError, match=option):
            getattr(record, name)
    with pytest.raises(NotAskedError, match="param_grads=True"):
        tape.params


def test_gradients_that_cannot_be_read_say_why(model):
    x = torch.randn(2, 3)
    scope = nethook.trace(model, "unused", grads=True, input_grads=True, param_grads=True)
    with scope as tape, torch.no_grad():
        model.unused(x)
    with pytest.raises(NoGradientError, match="did not require a gradient when it ran"):
        tape["unused"].grad
    with pytest.raises(NoGradientError, match="the inputs of 'unused' did not require"):
        tape["unused"].input_grads
    with pytest.raises(NoGradientError, match="call backward\\(\\) inside the scope"):
        tape.params["unused.weight"].grad
    with nethook.trace(model, "unused", grads=True) as tape:
        model.unused(x)
    with pytest.raises(NoGradientError, match="no backward pass has run through it yet"):
        tape["unused"].grad


def test_a_frozen_parameter_is_said_to_be(model):
    model.fc.weight.requires_grad_(False)
    with nethook.trace(model, param_grads=True) as tape:
        model(torch.randn(2, 3)).sum().backward()
    with pytest.raises(NoGradientError, match=r"'fc\.weight' is frozen"):
        tape.params["fc.weight"].grad
    assert tape.params["fc.bias"].grad.shape == (3,)


def test_a_lost_gradient_is_not_made_up():
    class Flat(nn.Module):
        def __init__(self):
            super().__init__()
            self.fc, self.flat = nn.Linear(2, 2), nn.Flatten()

        def forward(self, x):
            y = self.flat(self.fc(x).sin())
            y += 1  # the output of Flatten is a view of its input
            return y.square()

    model = Flat()
    with nethook.trace(model, grads=True) as tape:
        model(torch.randn(3, 2, 2)).sum().backward()
    with pytest.raises(NoGradientError, match="a view that was written in place"):
        tape["flat"].grad
    assert tape["fc"].grad.shape == (3, 2, 2)


def test_several_backward_passes_are_told_apart(model):
    with nethook.trace(model, "unused", grads=True, param_grads=True, input_grads=True) as tape:
        out = model.unused(torch.randn(2, 3, requires_grad=True)).sum()
        out.backward(retain_graph=True)
        (3 * out).backward()
    with pytest.raises(SeveralCallsError, match=r"2 backward passes: read .grads\[i\]"):
        tape["unused"].grad
    with pytest.raises(SeveralCallsError, match="2 backward passes"):
        tape["unused"].input_grads
    with pytest.raises(SeveralCallsError, match="2 backward passes"):
        tape.params["unused.weight"].grad
    one, two = tape["unused"].grads
    assert torch.equal(two, 3 * one)


def test_gradients_of_nested_outputs_have_their_shape():
    model = nn.LSTM(2, 3)
    with nethook.trace(model, grads=True) as tape:
        output, (_, cell) = model(torch.randn(4, 2))
        (output.sum() + 2 * cell.sum()).backward()
    grad_output, (grad_hidden, grad_cell) = tape[""].grad
    assert torch.equal(grad_output, torch.ones(4, 3))
    assert grad_hidden is None
    assert torch.equal(grad_cell, torch.full((1, 3), 2.0))


def test_clear_forgets_and_goes_on(model):
    with nethook.trace(model, "fc", param_grads=True) as tape:
        model(torch.randn(2, 3)).sum().backward()
        tape.clear()
        assert (len(tape["fc"].calls), tape.forwards) == (0, 0)
        model(torch.randn(2, 3)).sum().backward()
    assert (len(tape["fc"].calls), tape.forwards) == (2, 1)
    assert tape.params["fc.weight"].grad.shape == (3, 3)


def test_clear_forgets_calls_that_were_only_counted():
    model = nn.Identity()
    with nethook.trace(model, calls="last") as tape:
        model(torch.ones(1))
        model(torch.ones(1))
        tape.clear()
        model(torch.ones(1))
    assert tape[""].output.item() == 1


def test_a_tape_prints_as_a_table(tape):
    assert str(tape).splitlines() == [
        "tape of 2 sites, 1 forward, 48 B",
        "address  type    calls  output      dtype    memory",
        "───────  ──────  ─────  ──────────  ───────  ──────",
        "fc       Linear      2  (2, 3)      float32    48 B",
        "unused   Linear      0  not called",
    ]
    assert "<td" in tape._repr_html_()
    assert tape.memory == 48


def test_records_calls_and_parameters_print_in_a_line(tape):
    assert repr(tape["fc"]) == "<record 'fc' (Linear): 2 calls, last (2, 3)>"
    assert repr(tape["unused"]) == "<record 'unused' (Linear): 0 calls>"
    assert repr(tape["fc"].calls) == (
        "[<call 0 of 'fc', forward 0: (2, 3)>, <call 1 of 'fc', forward 0: (2, 3)>]"
    )
    assert repr(tape.params["fc.weight"]) == "<gradients of 'fc.weight': 1 backward pass>"


def test_a_tape_does_not_keep_its_model_alive():
    model = Twice()
    with nethook.trace(model, inputs=True, grads=True, param_grads=True) as tape:
        model(torch.randn(2, 3, requires_grad=True)).sum().backward()
    gone = weakref.ref(model)
    del model
    gc.collect()
    assert gone() is None
    assert tape["fc"].last.output.shape == (2, 3)
