"""Where answering is not allowed: the whole runs, the result says why, and is right."""

import pytest
import torch
from torch import nn
from transformers import GPT2Config, GPT2LMHeadModel

import nethook
from nethook import edits, interp
from nethook.addresses.tree import Tree
from nethook.errors import SweepError
from nethook.interp.sweeping.answering import answerable, answered_before, why_hooked
from nethook.interp.sweeping.recording import record
from tests.interp.sweeping.plain_loop import plain_loop


def first(out):
    return out[:, 0]


def net(*middle):
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(4, 6), *middle, nn.Linear(6, 6), nn.Linear(6, 2))


X = torch.randn(3, 4, generator=torch.Generator().manual_seed(0))


def zeroed(model, at, rows=None, metric=first, base=X):
    """A sweep over the units of two layers, and the plain loop."""
    result = interp.sweep(
        model, base, at=at, over="units", change=edits.zero(), metric=metric, rows=rows
    )
    modules = [model.get_submodule(name) for name in at]
    state = torch.get_rng_state()

    def call(m):
        torch.set_rng_state(state)
        return m(base)

    indices = [[(..., unit) for unit in range(len(result.cells))]] * len(at)
    new = lambda _, value: torch.zeros_like(value)  # noqa: E731
    expected = plain_loop(model, call, modules, new, indices, metric)
    torch.set_rng_state(state)
    return result, expected


def test_hooks_of_others_are_called():
    model, seen = net(nn.Tanh()), []
    handle = model[1].register_forward_hook(lambda *_: seen.append(1))
    result, expected = zeroed(model, ["0", "2"], rows=1)
    handle.remove()
    assert result.whole.startswith(
        "'1' has a hook (tests.interp.sweeping.test_answering.test_hooks"
    )
    assert result.whole.endswith("), which has to be called")
    assert torch.equal(result.values, expected)
    assert len(seen) >= 12  # in every run
    with nethook.trace(model, "0"):
        assert "nethook.trace" in why_hooked(Tree(model))
    assert why_hooked(Tree(model)) == ""


def test_a_site_that_is_called_several_times():
    class Twice(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = nn.Linear(4, 4)

        def forward(self, x):
            return self.layer(self.layer(x).tanh())

    torch.manual_seed(0)
    result, expected = zeroed(Twice(), ["layer"])
    assert result.whole == "'layer' is called 2 times in a forward"
    torch.testing.assert_close(result.values, expected)
    taken = interp.sweep(Twice(), X, at="layer", change=interp.take(X), metric=first)
    assert not taken.effect.any()


def test_random_numbers():
    model = net(nn.Dropout(0.5)).train()
    result, expected = zeroed(model, ["0", "2"])
    assert result.whole.startswith("the model draws random numbers")
    assert result.rows == 1
    assert torch.equal(result.values, expected)
    fixed, _ = zeroed(model, ["0", "2"], rows=4)
    assert fixed.notes[0].startswith("one cell per run, not 4: random numbers")


def test_batch_norm_in_training_writes_buffers_and_in_evaluation_does_not():
    model = net(nn.BatchNorm1d(6)).train()
    before = model[1].running_mean.clone()
    result, _ = zeroed(model, ["0", "2"])
    assert result.whole == "the model writes to its buffer '1.running_mean'"
    assert result.rows == 1
    model[1].running_mean.copy_(before)
    again, _ = zeroed(model, ["0", "2"], rows=1)
    assert torch.equal(again.values, result.values)
    assert zeroed(model.eval(), ["0", "2"])[0].whole == ""


def test_rows_that_depend_on_each_other():
    class Centred(nn.Module):
        def forward(self, x):
            return x - x.mean(0)

    result, expected = zeroed(net(Centred()), ["0", "2"])
    assert result.whole == "rows of a batch depend on each other"
    assert result.rows == 1
    assert torch.equal(result.values, expected)


def test_caches():
    torch.manual_seed(0)
    config = GPT2Config(
        n_layer=2, n_head=2, n_embd=8, vocab_size=16, n_positions=8, bos_token_id=0, eos_token_id=0
    )
    model = GPT2LMHeadModel(config).eval()
    ids = torch.tensor([[1, 2, 3]])
    metric = lambda out: out.logits[:, -1, 0]  # noqa: E731
    at = "transformer.h.*"
    cached = interp.sweep(model, ids, at=at, change=edits.zero(), metric=metric, rows=1)
    plain = nethook.inputs(ids, use_cache=False)
    answered = interp.sweep(model, plain, at=at, change=edits.zero(), metric=metric, rows=1)
    assert "hands on a DynamicCache" in cached.whole
    assert cached.whole.endswith("give base with use_cache=False")
    assert answered.whole == ""
    assert torch.equal(cached.values, answered.values)


def test_a_forward_that_writes_to_its_input_or_to_what_was_answered():
    class InPlace(nn.Module):
        def __init__(self):
            super().__init__()
            self.one, self.two = nn.Linear(4, 4), nn.Linear(4, 4)

        def forward(self, x):
            x.mul_(2)
            return self.two(self.one(x).relu_())

    torch.manual_seed(0)
    model, given = InPlace(), X.clone()
    result = interp.sweep(model, given, at="t*", over="units", change=edits.zero(), metric=first)
    assert torch.equal(given, X)
    want = model(X.clone())[:, 0]
    assert torch.equal(result.base, want)
    torch.testing.assert_close(result.values[0, 1:], want.expand(3, 3))
    rows = interp.sweep(model, given, at="one", over="units", change=edits.zero(), metric=first)
    assert rows.effect.any()


def test_the_outermost_calls_that_have_ended():
    class Outer(nn.Module):
        def __init__(self):
            super().__init__()
            self.a = nn.Sequential(nn.Linear(2, 2), nn.ReLU())
            self.b = nn.Sequential(nn.Linear(2, 2), nn.ReLU())

        def forward(self, x):
            return self.b(self.a(x))

    model = Outer()
    tree = Tree(model)
    recording = record(tree, lambda: model(torch.ones(1, 2)), modules=set(tree.addresses))
    names = lambda at: [  # noqa: E731
        c.address
        for c in answered_before(
            recording.calls[at].ended[0], answerable(recording, {}, single=True)
        )
    ]
    assert names("a.0") == ["a.0"]
    assert names("a") == ["a"]
    assert names("b.0") == ["a", "b.0"]
    assert names("b") == ["a", "b"]
    assert names("") == [""]
    model.a.forward = model.a.forward  # replaced on the instance: its parts are answered instead
    recording = record(tree, lambda: model(torch.ones(1, 2)), modules=set(tree.addresses))
    assert names("b") == ["a.0", "a.1", "b"]


@pytest.mark.parametrize("batch_first", [True, False])
def test_an_lstm_with_rows_on_either_side(batch_first):
    torch.manual_seed(0)

    class Reader(nn.Module):
        def __init__(self):
            super().__init__()
            self.lstm = nn.LSTM(3, 4, num_layers=2, batch_first=batch_first)
            self.read = nn.Linear(4, 2)

        def forward(self, x):
            states, _ = self.lstm(x)
            return self.read(states[:, -1] if batch_first else states[-1])

    model = Reader()
    x, y = torch.randn(2, 2, 5, 3)
    if not batch_first:
        x, y = x.transpose(0, 1), y.transpose(0, 1)
    options = {"at": "lstm", "over": "positions", "metric": first}
    exact = interp.sweep(model, x, change=interp.take(y), rows=1, **options)
    batched = interp.sweep(model, x, change=interp.take(y), rows=5, **options)
    torch.testing.assert_close(exact.values, batched.values)
    assert exact.sites == ("lstm[0]",)
    assert (batched.runs, exact.runs) == (1, 5)
    assert not exact.effect[0, :4].any()
    assert torch.equal(exact.values[0, 4], first(model(y)))


@pytest.mark.parametrize("place", [0, -1])
@pytest.mark.parametrize("change", [edits.zero(), interp.take(2 * X + 1)])
def test_rows_that_depend_on_the_first_or_the_last_of_a_batch(place, change):
    class Anchored(nn.Module):
        def forward(self, x):
            return x - x[place].detach()

    model, options = net(nn.ReLU(), Anchored()), {"over": "units", "change": change}
    for metric in (first, lambda out: (out @ out.T)[:, place]):
        result = interp.sweep(model, X, at=["0", "3"], metric=metric, **options)
        assert (result.whole, result.rows) == ("rows of a batch depend on each other", 1)
        exact = interp.sweep(model, X, at=["0", "3"], metric=metric, rows=1, **options)
        assert torch.equal(result.values, exact.values)
        assert torch.equal(result.source, exact.source) if result.source is not None else True


def test_rows_that_depend_on_each_other_once_they_are_changed():
    """The base and its neighbours show nothing of it: all of their values are small."""

    class Mixing(nn.Module):
        def forward(self, x):
            return x if x.abs().max() < 50 else x - x.mean(0)

    model = net(Mixing())
    options = {"at": "0", "over": "units", "metric": first, "change": edits.replace(100.0)}
    result = interp.sweep(model, X, **options)
    assert result.whole == "rows of a batch depend on each other"
    assert torch.equal(result.values, interp.sweep(model, X, rows=1, **options).values)
    asked = interp.sweep(model, X, rows=4, **options)
    assert asked.notes == ("one cell per run, not 4: rows of a batch depend on each other",)
    assert torch.equal(asked.values, result.values)


def test_halves_are_compared_as_such_and_subtracted_as_floats():
    torch.manual_seed(0)
    layers = [layer for _ in range(8) for layer in (nn.Linear(64, 64), nn.Tanh())]
    model, x = nn.Sequential(*layers).bfloat16(), torch.randn(5, 64).bfloat16()
    result = interp.sweep(model, x, at="1", over="units", change=edits.zero(), metric=first)
    assert (result.whole, result.values.dtype) == ("", torch.float32)
    assert result.rows > 1


def test_a_metric_that_is_not_a_number_is_said():
    model = net()
    metric = lambda out: out[:, 0].where(torch.tensor([True, False, True]), torch.nan)  # noqa: E731
    options = {"at": "0", "over": "units", "change": edits.zero(), "metric": metric}
    result = interp.sweep(model, X, **options)
    assert result.notes == ("the metric of base is NaN in 1 of 3 rows: left out",)
    assert "the metric of base is NaN in 1 of 3 rows" in repr(result)
    assert result.floor == result.floor
    assert not result.mean.isnan().any()


def test_a_batch_without_rows_is_refused():
    with pytest.raises(SweepError, match="`base` must have at least one row"):
        zeroed(net(), ["0"], base=X[:0])
