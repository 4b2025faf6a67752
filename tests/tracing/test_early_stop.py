"""`stop=True`: where a forward ends, and what is learnt when a site never runs."""

import gc

import pytest
import torch
from torch import nn

import nethook
from nethook.errors import NotRunError
from nethook.tracing import early_stop


class Branches(nn.Module):
    """a → b → (c if asked) → d; `never` is not called. Counts what ran."""

    def __init__(self) -> None:
        super().__init__()
        self.a, self.b, self.c, self.d = (nn.Identity() for _ in range(4))
        self.never = nn.Identity()
        self.ran: list[str] = []
        self.swap = self.with_c = False

    def forward(self, x):
        self.ran = []
        names = ["b", "a"] if self.swap else ["a", "b"]
        for name in [*names, *(["c"] if self.with_c else []), "d"]:
            x = getattr(self, name)(x)
            self.ran.append(name)
        return x


@pytest.fixture
def model():
    return Branches()


def stop_at(model, *sites):
    """Traces with stop=True; returns the tape and whether the line after the call was reached."""
    reached = False
    with nethook.trace(model, *sites, stop=True) as tape:
        model(torch.ones(1))
        reached = True
    return tape, reached


def test_the_forward_ends_once_every_site_was_seen(model):
    tape, reached = stop_at(model, "a", "b")
    assert model.ran == ["a"]  # b ran and did not come back
    assert not reached
    assert tape.stopped
    assert torch.equal(tape["b"].output, torch.ones(1))
    assert not nethook.audit(model)


def test_the_order_of_the_patterns_does_not_matter(model):
    stop_at(model, "b", "a")
    assert model.ran == ["a"]


def test_a_module_that_was_seen_twice_counts_once():
    model = nn.Sequential(nn.Identity(), nn.Identity(), nn.Identity())
    model.append(model[0])
    ran = []
    model[2].register_forward_hook(lambda *_: ran.append(2))
    with nethook.trace(model, "0", "1", stop=True):
        model(torch.ones(1))
    assert not ran


def test_a_site_that_never_runs_lets_the_forward_run_to_its_end_and_teaches(model):
    tape, reached = stop_at(model, "a", "never")
    assert reached
    assert not tape.stopped
    with pytest.raises(NotRunError, match="this forward does not call it"):
        tape["never"].output
    tape, reached = stop_at(model, "a", "never")
    assert not reached
    assert model.ran == []
    with pytest.raises(NotRunError, match=r"stop=True ended the forward after 'a'.*without stop"):
        tape["never"].output


def test_what_was_learnt_for_other_sites_does_not_count(model):
    stop_at(model, "a", "never")
    _, reached = stop_at(model, "b", "never")
    assert reached


def test_a_different_order_voids_the_lesson_and_teaches_anew(model):
    stop_at(model, "a", "b", "never")
    model.swap = True
    tape, reached = stop_at(model, "a", "b", "never")
    assert reached
    assert torch.equal(tape["a"].output, torch.ones(1))
    _, reached = stop_at(model, "a", "b", "never")
    assert not reached
    assert model.ran == ["b"]


def test_a_site_that_comes_back_is_waited_for_when_it_comes_before_the_end(model):
    stop_at(model, "a", "c", "d")
    model.with_c = True
    tape, reached = stop_at(model, "a", "c", "d")
    assert not reached  # all three were seen
    assert torch.equal(tape["c"].output, torch.ones(1))


def test_a_forward_that_raises_teaches_nothing(model):
    handle = model.b.register_forward_hook(lambda *_: 1 / 0)
    with pytest.raises(ZeroDivisionError), nethook.trace(model, "a", "d", stop=True):
        model(torch.ones(1))
    handle.remove()
    tape, _ = stop_at(model, "a", "d")
    assert torch.equal(tape["d"].output, torch.ones(1))


def test_a_model_that_catches_everything_from_its_child_still_stops():
    class Careful(nn.Module):
        def __init__(self):
            super().__init__()
            self.child, self.other = nn.Identity(), nn.Identity()

        def forward(self, x):
            try:
                return self.child(x)
            except Exception:
                return self.other(x)

    model = Careful()
    with nethook.trace(model, "child", stop=True):
        model(torch.ones(1))
        pytest.fail("the forward went on")


def test_an_inner_scope_stops_without_ending_an_outer_one(model):
    with nethook.trace(model, "d", stop=True) as outer:
        with nethook.trace(model, "a", stop=True) as inner:
            model(torch.ones(1))
            pytest.fail("the forward went on")
        assert inner.stopped
        model(torch.ones(1))
        pytest.fail("the forward went on")
    assert outer.stopped
    assert torch.equal(outer["d"].output, torch.ones(1))


def test_leaving_by_another_exception_is_not_swallowed(model):
    with pytest.raises(KeyError), nethook.trace(model, "a", stop=True):
        raise KeyError("mine")
    assert not nethook.audit(model)


def test_stopping_works_with_inputs_and_gradients(model):
    x = torch.ones(1, requires_grad=True)
    with nethook.trace(model, "b", inputs=True, grads=True, stop=True) as tape:
        model(x * 2)
    assert torch.equal(tape["b"].input, torch.full((1,), 2.0))


def test_what_was_learnt_is_forgotten_with_the_model():
    model = Branches()
    stop_at(model, "a", "never")
    assert id(model) in early_stop._orders._learnt
    key = id(model)
    del model
    gc.collect()
    assert key not in early_stop._orders._learnt


def test_a_model_with_an_equality_of_its_own_can_be_traced():
    class Odd(nn.Module):
        __hash__ = None

        def __eq__(self, other):
            raise RuntimeError("compared")

        def forward(self, x):
            return x

    model = Odd()
    with nethook.trace(model, "", stop=True) as tape:
        model(torch.ones(1))
    assert torch.equal(tape[""].output, torch.ones(1))
