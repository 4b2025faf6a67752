"""Modules that treat each token by itself are given the tokens that differ, and no others."""

import pytest
import torch
from torch import nn

from nethook import interp
from nethook.addresses.tree import Tree
from nethook.interp.sweeping.recording import record
from nethook.interp.sweeping.sites import Wanted, found_sites
from nethook.interp.sweeping.tokens import TokenByToken, worth_a_look
from tests.interp.sweeping.plain_loop import outputs, plain_loop

ROWS, TOKENS, WIDTH, BLOCKS = 2, 9, 8, 5


class Mixing(nn.Module):
    """Attention of one argument: nobody says that it looks at other tokens."""

    def __init__(self, *, causal=True):
        super().__init__()
        self.qkv, self.causal = nn.Linear(WIDTH, 3 * WIDTH), causal

    def forward(self, x):
        parts = self.qkv(x).chunk(3, -1)
        return nn.functional.scaled_dot_product_attention(*parts, is_causal=self.causal)


class Counting(nn.Module):
    """An MLP that notes how many tokens it was given: a list of its own would be put back."""

    def __init__(self, note):
        super().__init__()
        self.up, self.down, self.note = nn.Linear(WIDTH, 16), nn.Linear(16, WIDTH), note

    def forward(self, x):
        self.note(x.shape[:-1].numel())
        return self.down(nn.functional.gelu(self.up(x)))


class Block(nn.Module):
    def __init__(self, mixing, mlp):
        super().__init__()
        self.mixing, self.mlp = mixing, mlp

    def forward(self, x):
        x = x + self.mixing(x)
        return x + self.mlp(x)


def network(mlp, *, causal=True):
    torch.manual_seed(0)
    blocks = [Block(Mixing(causal=causal), mlp()) for _ in range(BLOCKS)]
    return nn.Sequential(*blocks).double()


def last(output):
    return output[:, -1, 0]


def texts():
    return torch.randn(2, ROWS, TOKENS, WIDTH, dtype=torch.double)


def swept(model, base, source, **options):
    return interp.sweep(
        model, base, at="*", over="positions", change=interp.take(source), metric=last, **options
    )


def by_hand(model, base, source):
    theirs = outputs(model, lambda m: m(source), list(model))
    indices = [[(slice(None), n) for n in range(TOKENS)] for _ in model]
    return plain_loop(model, lambda m: m(base), list(model), lambda n, _: theirs[n], indices, last)


@pytest.mark.parametrize("rows", [None, 5, TOKENS, 3 * TOKENS])
def test_fewer_tokens_give_the_same(rows, monkeypatch):
    seen = []
    note = seen.append  # one object, for what modules hold tells their forms apart
    model = network(lambda: Counting(note))
    base, source = texts()
    expected = by_hand(model, base, source)
    del seen[:]
    result = swept(model, base, source, rows=rows)
    torch.testing.assert_close(result.values, expected, rtol=0, atol=1e-10)
    assert not result.whole
    shorter = sum(seen)
    del seen[:]
    monkeypatch.setattr(TokenByToken, "may", lambda *_: False)
    swept(model, base, source, rows=rows)
    assert shorter < 0.85 * sum(seen)


class Positions(nn.Linear):
    """A table of positions: it treats each token by itself, and each in its own way."""

    def forward(self, x):
        return super().forward(x) * torch.arange(1, x.shape[1] + 1, dtype=x.dtype)[:, None] / 9


class Before(nn.Linear):
    """Each token and the one before it: a convolution."""

    def forward(self, x):
        return super().forward(x + x.roll(1, 1))


class Writing(nn.Linear):
    """Returns a value, and leaves another in its argument."""

    def forward(self, x):
        return super().forward(x.mul_(0.5))


@pytest.mark.parametrize("kind", [Positions, Before, Writing])
def test_what_is_not_token_by_token_is_given_all(kind):
    model = network(lambda: kind(WIDTH, WIDTH))
    base, source = texts()
    expected = by_hand(model, base, source)
    result = swept(model, base, source, rows=TOKENS)
    torch.testing.assert_close(result.values, expected, rtol=0, atol=1e-10)


def test_where_tokens_see_later_ones_all_are_computed():
    seen = []
    note = seen.append  # one object, for what modules hold tells their forms apart
    model = network(lambda: Counting(note), causal=False)
    base, source = texts()
    expected = by_hand(model, base, source)
    result = swept(model, base, source, rows=TOKENS)
    torch.testing.assert_close(result.values, expected, rtol=0, atol=1e-10)
    assert (TOKENS + 1) * ROWS * TOKENS in seen


def test_modules_with_sites_inside_run_whole():
    model = network(lambda: Counting(str))
    x = texts()[0]
    tree = Tree(model)
    for at, inside in (("2.mlp.up", ["2", "2.mlp"]), ("2.mlp/gelu", ["2", "2.mlp"]), ("2", [])):
        wanted = Wanted(tree, [at], "")
        recording = record(tree, lambda: model(x), wanted.ops, modules=wanted.recorded(tree))
        found = worth_a_look(tree, found_sites(wanted, recording, None))
        assert set(found).isdisjoint(["", *inside])
        assert {"2.mlp.down", "1", "1.mlp", "1.mixing.qkv"} <= set(found)


def test_forms_are_tried_once_and_attributes_make_another_form():
    calls = []

    def run(x):
        calls.append(tuple(x.shape))
        return x * 2

    one, same, other = nn.Linear(4, 4), nn.Linear(4, 4), nn.Linear(4, 4)
    other.window = 3
    value = torch.randn(1, 6, 4).repeat(4, 1, 1)
    value[0, 3:] += 1
    tokens = TokenByToken(rows=1)
    assert tokens.may((value,), {}, 4)
    for module in (one, same, other):
        torch.testing.assert_close(tokens.computed(module, value, 4, run), value * 2)
    tried = [(2, 6, 4), (1, 9, 4)]
    assert calls == [*tried, (1, 9, 4), (1, 9, 4), *tried, (1, 9, 4)]


def test_calls_of_another_shape_are_left_alone():
    tokens = TokenByToken(rows=2)
    value = torch.zeros(8, 3, 5)
    assert tokens.may((value,), {}, 4)
    assert not tokens.may((value,), {}, 3)
    assert not tokens.may((value, None), {}, 4)
    assert not tokens.may((value,), {"mask": None}, 4)
    assert not tokens.may((value.long(),), {}, 4)
    assert not tokens.may((value[:, 0],), {}, 4)


def test_nothing_saved_twice_in_a_row_ends_the_search():
    def run(x):
        return x + 1

    tokens, module = TokenByToken(rows=1), nn.Linear(4, 4)
    unlike = torch.randn(5, 6, 4)
    for _ in range(2):
        assert torch.equal(tokens.computed(module, unlike, 5, run), unlike + 1)
    given = []
    alike = unlike[:1].repeat(5, 1, 1)
    tokens.computed(module, alike, 5, lambda x: given.append(x.shape) or x)
    assert given == [(5, 6, 4)]


def test_numbers_are_compared_by_their_bits():
    """NaN is the base's where it has the same; and -0.0, by which somebody may divide, is not 0."""
    value = torch.zeros(4, 3, 4)
    value[:, 0, 0] = torch.nan
    value[1, 2, 1] = -0.0
    value[2, 1, 3] = 5.0
    given = []
    tokens, module = TokenByToken(rows=1), nn.Linear(4, 4)
    for numbers in (value.nan_to_num(), value):
        tokens.computed(module, numbers, 4, lambda x: given.append(x) or x + 1)
        assert given[-1].shape == (1, 5, 4)  # three of the base and two that differ
