"""`sweep` against the plain loop, bit for bit, and the relations that hold on every model."""

import copy
import random

import pytest
import torch
from torch import nn

import nethook
from nethook import edits, interp
from nethook.errors import NoSuchSiteError, SweepError
from tests.interp.sweeping.plain_loop import outputs, plain_loop


class Block(nn.Module):
    """A residual block with attention written out."""

    def __init__(self, width):
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.qkv = nn.Linear(width, 3 * width)
        self.mix = nn.Linear(width, width)

    def forward(self, x):
        rows, length, width = x.shape
        q, k, v = self.qkv(self.norm(x)).reshape(rows, length, 3, 2, width // 2).unbind(2)
        q, k, v = (part.transpose(1, 2) for part in (q, k, v))
        mixed = torch.softmax(q @ k.mT, -1) @ v
        return x + self.mix(mixed.transpose(1, 2).reshape(x.shape))


class Small(nn.Module):
    """A transformer with a last-token readout."""

    def __init__(self, layers=3, width=8):
        super().__init__()
        self.embed = nn.Embedding(11, width)
        self.blocks = nn.ModuleList(Block(width) for _ in range(layers))
        self.read = nn.Linear(width, 5)

    def forward(self, ids):
        x = self.embed(ids)
        for block in self.blocks:
            x = block(x)
        return self.read(x[:, -1])


BASE = torch.tensor([[1, 2, 3, 4], [5, 6, 7, 8]])
SOURCE = torch.tensor([[4, 3, 9, 1], [5, 2, 2, 10]])


def first(out):
    return out[:, 0]


@pytest.fixture(scope="module")
def model():
    torch.manual_seed(0)
    return Small().eval()


@pytest.fixture(scope="module")
def patched(model):
    """The plain loop over blocks and positions."""
    blocks = list(model.blocks)
    source = outputs(model, lambda m: m(SOURCE), blocks)
    indices = [[(slice(None), p) for p in range(4)]] * 3
    return plain_loop(model, lambda m: m(BASE), blocks, lambda n, _: source[n], indices, first)


def sweep(model, **given):
    options = {"at": "blocks.*", "over": "positions", "change": interp.take(SOURCE)}
    return interp.sweep(model, BASE, metric=first, **(options | given))


@pytest.mark.parametrize("rows", [1, 2, 3, 5, 12, None])
def test_it_is_the_plain_loop(model, patched, rows):
    result = sweep(model, rows=rows)
    if rows == 1:
        assert torch.equal(result.values, patched)
        assert (result.runs, result.floor) == (12, 0.0)
    torch.testing.assert_close(result.values, patched)
    assert result.sites == ("blocks.0", "blocks.1", "blocks.2")
    assert result.cells == ("0", "1", "2", "3")
    assert result.whole == ""
    assert torch.equal(result.base, first(model(BASE)))
    assert torch.equal(result.source, first(model(SOURCE)))
    if rows is not None:
        assert result.rows == rows


def test_calls_before_the_change_are_answered(model):
    calls = []
    counting = copy.deepcopy(model)
    inner = type(counting.blocks[0].mix)
    before = inner.forward

    def forward(self, x):
        calls.append(self)
        return before(self, x)

    inner.forward = forward
    try:
        sweep(counting, rows=1)
    finally:
        inner.forward = before
    # Three runs to begin with; in the runs of block n, the blocks after it (each has two layers).
    assert sum(call is counting.blocks[0].mix for call in calls) == 3
    assert sum(call is counting.blocks[2].mix for call in calls) == 3 + 4 + 4


@pytest.mark.parametrize(
    ("change", "new"),
    [
        (edits.zero(), torch.zeros_like),
        (edits.scale(0.5), lambda v: v * 0.5),
        (lambda value: value.flip(-1), lambda v: v.flip(-1)),
        (lambda value, site: value + len(site), lambda v: v + 8),
        (edits.noise(1.0, seed=3), edits.noise(1.0, seed=3)),
    ],
)
@pytest.mark.parametrize("rows", [1, 4])
def test_edits_and_functions(model, change, new, rows):
    result = sweep(model, over="units", change=change, rows=rows)
    indices = [[(..., unit) for unit in range(8)]] * 3
    call, blocks = (lambda m: m(BASE)), list(model.blocks)
    expected = plain_loop(model, call, blocks, lambda _, v: new(v), indices, first)
    torch.testing.assert_close(result.values, expected, rtol=0, atol=0 if rows == 1 else 1e-6)


def test_the_whole_value_and_index_tuples(model, patched):
    whole = sweep(model, over=None, rows=1)
    # Patching a whole cut gives the output of the source, bit for bit.
    assert torch.equal(whole.values[:, 0], first(model(SOURCE)).expand(3, 2))
    assert torch.equal(whole.recovered, torch.ones(3, 1, 2))
    some = sweep(model, over=[(1,), (slice(2, 4),), (0, slice(None))], rows=1)
    assert torch.equal(some.values[:, 0], patched[:, 1])
    assert torch.equal(some.values[:, 2], patched[:, 0])
    assert some.cells == ("1", "2:4", "0, :")


def test_operations_and_heads(model):
    by_op = sweep(model, at="blocks.*/matmul#1", over="heads", change=edits.zero(), rows=1)
    by_module = sweep(model, over="heads", change=edits.zero(), rows=1)
    assert by_op.sites == tuple(f"blocks.{n}/matmul#1" for n in range(3)) == by_module.sites
    assert torch.equal(by_op.values, by_module.values)
    # A head is a slice of what the output projection is given.
    for layer in range(3):
        for head in range(2):
            columns = slice(4 * head, 4 * head + 4)

            def without(value, columns=columns):
                value = value.clone()
                value[..., columns] = 0
                return value

            with nethook.edit(model, inputs={f"blocks.{layer}.mix": without}):
                assert torch.equal(by_op.values[layer, head], first(model(BASE)))


def test_a_source_that_is_the_base_has_no_effect_at_all(model):
    for rows in (1, 4):
        for over in (None, "positions", "units", "heads"):
            result = sweep(model, over=over, change=interp.take(BASE), rows=rows)
            assert result.effect.abs().max() <= result.floor
            assert rows > 1 or not result.effect.any()


def test_a_row_does_not_depend_on_its_batch():
    torch.manual_seed(0)
    model = Small().eval().double()
    both = sweep(model, change=interp.noise_at(1.0, seed=5))
    for row in range(2):
        one = interp.sweep(
            model, BASE[row : row + 1], at="blocks.*", over="positions",
            change=interp.take(SOURCE[row : row + 1]), metric=first,
        )  # fmt: skip
        together = sweep(model)
        torch.testing.assert_close(
            one.values[..., 0], together.values[..., row], rtol=0, atol=1e-10
        )
    alone = interp.sweep(
        model, BASE[:1], at="blocks.*", over="positions", change=interp.noise_at(1.0, seed=5),
        metric=first,
    )  # fmt: skip
    torch.testing.assert_close(alone.values[..., 0], both.values[..., 0], rtol=0, atol=1e-10)


def test_everything_is_left_as_it_was():
    torch.manual_seed(0)
    model = Small().train()
    model(BASE).sum().backward()
    grads = [p.grad.clone() for p in model.parameters()]
    weights = copy.deepcopy(model.state_dict())
    attributes = [set(vars(m)) for m in model.modules()]
    ids, state, drawn = BASE.clone(), torch.get_rng_state(), random.getstate()
    interp.sweep(
        model, BASE, at="blocks.*", over="units", change=interp.noise_at(1.0), metric=first
    )
    assert not nethook.audit(model)
    assert model.training
    assert torch.is_grad_enabled()
    assert torch.equal(torch.get_rng_state(), state)
    assert random.getstate() == drawn
    assert torch.equal(BASE, ids)
    assert [set(vars(m)) for m in model.modules()] == attributes
    assert all(map(torch.equal, grads, [p.grad for p in model.parameters()]))
    assert all(torch.equal(weights[k], v) for k, v in model.state_dict().items())


def test_nothing_is_left_after_an_error(model):
    def broken(value):
        raise KeyError("no")

    with pytest.raises(KeyError):
        sweep(model, change=broken)
    assert not nethook.audit(model)


def test_a_metric_that_is_not_one_number_per_row(model):
    why = (
        r"one number per row of the batch, a tensor of shape \(rows,\); got a single number\. Leave"
    )
    with pytest.raises(SweepError, match=why):
        interp.sweep(model, BASE, at="blocks.0", change=edits.zero(), metric=lambda o: o.mean())
    with pytest.raises(SweepError, match=r"got the shape \(2, 5\)"):
        interp.sweep(model, BASE, at="blocks.0", change=edits.zero(), metric=lambda o: o)
    with pytest.raises(SweepError, match="must return a tensor with one number per row; got float"):
        interp.sweep(model, BASE, at="blocks.0", change=edits.zero(), metric=lambda o: 1.0)


def test_a_metric_with_a_target_for_each_row(model):
    targets = torch.tensor([3, 1])
    metric = lambda out: out[torch.arange(2), targets]  # noqa: E731
    one = interp.sweep(model, BASE, at="blocks.*", change=edits.zero(), metric=metric, rows=1)
    all_ = interp.sweep(model, BASE, at="blocks.*", change=edits.zero(), metric=metric, rows=3)
    assert all_.runs == 1
    torch.testing.assert_close(one.values, all_.values)


def test_the_input_and_pixels():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Conv2d(1, 2, 3), nn.ReLU(), nn.Flatten(), nn.Linear(8, 3)).eval()
    images = torch.randn(2, 1, 4, 4)
    result = interp.sweep(model, images, over="pixels", change=edits.zero(), metric=first, rows=1)
    assert (result.sites, result.grid) == (("input",), (4, 4))
    for number, (y, x) in enumerate((y, x) for y in range(4) for x in range(4)):
        other = images.clone()
        other[:, :, y, x] = 0
        assert torch.equal(result.values[0, number], first(model(other)))
    assert result.cells[5] == "1, 1"
    inner = interp.sweep(model, images, at="0", over="pixels", change=edits.zero(), metric=first)
    assert inner.grid == (2, 2)


def test_mean_and_resample_ablation(model):
    data = [BASE, SOURCE, SOURCE[:1]]
    values = torch.cat([outputs(model, lambda m, d=d: m(d), [model.blocks[1]])[0] for d in data])
    mean = values.mean((0, 1))
    call, index = (lambda m: m(BASE)), [[(slice(None), p) for p in range(4)]]
    expected = plain_loop(
        model, call, [model.blocks[1]], lambda _, v: mean.expand_as(v), index, first
    )
    result = sweep(model, at="blocks.1", change=interp.mean_of(data))
    torch.testing.assert_close(result.values, expected)
    each = sweep(model, at="blocks.1", change=interp.mean_of(data, each_position=True))
    expected = plain_loop(
        model, call, [model.blocks[1]], lambda _, v: values.mean(0).expand_as(v), index, first
    )
    torch.testing.assert_close(each.values, expected)
    pool = torch.cat([SOURCE, BASE.flip(1)])
    drawn = torch.randint(4, (2,), generator=torch.Generator().manual_seed(7))
    (states,) = outputs(model, lambda m: m(pool), [model.blocks[1]])
    expected = plain_loop(model, call, [model.blocks[1]], lambda _, v: states[drawn], index, first)
    result = sweep(model, at="blocks.1", change=interp.resample(pool, seed=7), rows=1)
    torch.testing.assert_close(result.values, expected)


def test_wrong_arguments(model):
    for given, why in (
        ({"over": "tokens"}, "`over` must be None, one of 'positions', 'heads', 'units', 'pixels'"),
        ({"over": [3]}, "a list of index tuples without the batch"),
        ({"over": [(9,)]}, r"the index \(9,\) does not fit a row of 'blocks.0'"),
        ({"rows": 0}, "`rows` must be a positive number of cells; got 0"),
        ({"change": 3}, "`change` must be one of nethook.edits, a function of the value"),
        ({"change": interp.take}, r"got the class. Write take\(...\)"),
        ({"change": edits.zero(rows=1)}, "`change` must have no limits of its own"),
        ({"change": edits.noise(1.0)}, "got noise without a seed"),
        ({"change": lambda v: v[:1]}, "must return a tensor of the value's shape"),
        ({"change": interp.take(SOURCE[:1])}, "`source` must have as many rows as base, 2; got 1"),
        ({"change": interp.take(SOURCE[:, :2])}, "say which tokens match"),
        ({"at": None}, "`at` must name sites where base holds whole numbers alone"),
        ({"over": "pixels"}, "has no pixels"),
        ({"at": "embed", "over": "heads"}, "no attention whose heads are dimension 1"),
        ({"change": None}, "`change` must be given"),
        ({"spread": True}, "`spread` needs the processes of torchrun"),
    ):
        with pytest.raises(SweepError, match=why):
            sweep(model, **given)
    with pytest.raises(NoSuchSiteError):
        sweep(model, at="nothing")


def test_a_source_of_another_length(model, patched):
    longer = torch.cat([SOURCE[:, :1], SOURCE], 1)
    pairs = [(2, 3), (3, 4)]
    moved = sweep(model, change=interp.take(longer, positions=pairs), rows=1)
    values = outputs(model, lambda m: m(longer), list(model.blocks))
    assert moved.effect[:, 0].abs().max() == 0
    call = lambda m: m(BASE)  # noqa: E731

    def new(number, value):
        value = value.clone()
        value[:, 2], value[:, 3] = values[number][:, 3], values[number][:, 4]
        return value

    indices = [[(slice(None), p) for p in range(4)]] * 3
    expected = plain_loop(model, call, list(model.blocks), new, indices, first)
    assert torch.equal(moved.values, expected)
