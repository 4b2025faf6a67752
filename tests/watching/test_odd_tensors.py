"""A watch goes on whatever tensors a model has, and names those that it cannot read."""

from __future__ import annotations

import pytest
import torch
from torch import nn

import nethook
from nethook.errors import InputsError
from nethook.runs import names
from nethook.watching.facts.facts import distinct_rows
from nethook.watching.flight.file import load, weights_of
from nethook.watching.flight.reasons import backward_reason, forward_reason
from nethook.watching.losses.kinds import PROBABILITIES, Operands
from nethook.watching.losses.numbers import numbers_of, unpacked
from nethook.watching.measuring.batches import distinct, spread
from tests.zoo.odd_tensors import HUGE, ODD, Takes

NOT_MEASURED = {
    "coo": "sparse", "csr": "sparse", "csc": "sparse", "bsr": "sparse", "nested": "nested",
    "jagged": "nested", "quantised": "quantized", "mkldnn": "mkldnn", "meta": "meta",
    "subclass": "subclass", "uint4": "uint4",
}  # fmt: skip


class Gives(nn.Module):
    def __init__(self, value) -> None:
        super().__init__()
        self.value = [value]

    def forward(self):
        return self.value[0]


class Returns(Takes):
    """Each of its children returns a tensor of one kind."""

    def __init__(self) -> None:
        super().__init__()
        self.odd = nn.ModuleDict({name: Gives(value) for name, value in ODD.items()})

    def forward(self, x):
        for child in self.odd.values():
            child()
        return self.fc(x)


class Holds(Takes):
    """Has a parameter of each kind that torch lets one be."""

    def __init__(self) -> None:
        super().__init__()
        for name, value in ODD.items():
            learns = value.is_floating_point() or value.is_complex()
            self.register_parameter(name, nn.Parameter(value, requires_grad=learns))

    def forward(self, x):
        # Both parts of a complex parameter get a gradient, and an empty one has one, too.
        numbers = self.complex * torch.arange(8)[:, None] + self._parameters["no rows"].sum()
        return self.fc(x) + numbers.abs().square().mean() + self._parameters["no columns"].sum()


def train(model, inputs, path, steps=2, poison=False, **options):
    """Trains under a watch, and returns the run; a warning of torch's or ours is an error."""
    known = [each for each in model.parameters() if each.layout is torch.strided]
    known = [each for each in known if not each.is_meta and not each.is_nested]
    optimizer = torch.optim.SGD([each for each in known if each.requires_grad], lr=0.01)
    with nethook.watch(model, optimizer, to=path, **options):
        for _ in range(steps):
            optimizer.zero_grad()
            loss = model(*inputs).abs().square().mean()
            (loss * float("nan") if poison else loss).backward()
            optimizer.step()
    run = nethook.open_run(path)
    assert run.info["totals"]["steps"] == steps
    assert not [each for each in run.events if each.kind == names.FAILED]
    return run


def info_of(run, address):
    return next(each.info for each in run.sites if each.address == address)


@pytest.mark.parametrize("kind", ODD)
def test_a_watch_takes_any_input(kind, tmp_path):
    run = train(Takes(), (ODD[kind], torch.randn(8, 4)), tmp_path / "run.db")
    info = next(each.info for each in run.catalogue if each.quantity == names.INPUTS)
    assert info.get("not_measured") == NOT_MEASURED.get(kind)


def test_a_watch_takes_any_output(tmp_path):
    snapshots = {f"odd.{name}": 2 for name in ODD}
    run = train(Returns(), (torch.randn(8, 4),), tmp_path / "run.db", snapshots=snapshots)
    for kind in ODD:
        found = info_of(run, f"odd.{kind}").get("not_measured")
        assert found == NOT_MEASURED.get(kind), kind


def test_a_watch_takes_any_parameter(tmp_path):
    model = Holds()
    run = train(model, (torch.randn(8, 4),), tmp_path / "run.db")
    rows = info_of(run, "complex")
    assert rows["distinct_rows"] == {"0": 8, "1": 8}
    assert rows["moved"] == [2, 2]
    assert "distinct_rows" not in info_of(run, "no rows")


@pytest.mark.parametrize("kind", ["coo", "nested", "quantised", "expanded", "complex", "subclass"])
def test_the_batch_of_a_nan_is_saved_without_what_a_file_cannot_hold(kind, tmp_path, capsys):
    run = train(Takes(), (ODD[kind], torch.randn(8, 4)), tmp_path / "run.db", poison=True)
    event = next(each for each in run.events if each.kind == names.NON_FINITE)
    flight = load(tmp_path / "run.db")
    if kind in ("expanded", "complex", "subclass"):
        assert event.data["left_out"] == []
        assert flight.args[0].shape == ODD[kind].shape
        assert torch.equal(flight.args[0][:, 0], ODD[kind].as_subclass(torch.Tensor)[:, 0])
    else:
        said = f"args.0 ({NOT_MEASURED[kind]} tensor)"
        assert event.data["left_out"] == [said]
        assert said in capsys.readouterr().err
        assert flight.args[0] is None
        with pytest.raises(InputsError, match=r"cannot hold args\.0"):
            nethook.replay(tmp_path / "run.db", Takes())
    assert flight.args[1].shape == (8, 4)


def test_weights_of_any_kind_are_counted():
    assert weights_of(Holds()) is not None


def test_a_parameter_without_rows_has_no_distinct_ones():
    for shape in ((0, 3), (3, 0), (0, 0), (2, 0, 4)):
        assert int(distinct_rows(torch.zeros(shape), 0.0)) == 0


def test_rows_are_told_apart_by_both_parts():
    real = torch.ones(5, 3)
    rows = torch.complex(real, torch.arange(5.0)[:, None].expand(5, 3))
    assert int(distinct_rows(rows, 1e-13)) == 5
    assert int(distinct_rows(torch.complex(real, real), 1e-13)) == 1
    assert int(distinct_rows(rows[:1].expand(HUGE, 3), 1e-13)) == 1
    assert int(distinct_rows(torch.randn(4, 1).expand(4, HUGE), 1e-13)) == 4


def test_complex_weights_that_differ_in_one_part_are_not_symmetric(tmp_path):
    class Complex(nn.Module):
        def __init__(self, start) -> None:
            super().__init__()
            self.weight = nn.Parameter(start)

        def forward(self, x):
            return (x.to(self.weight.dtype) @ self.weight.T).abs()

    real = torch.full((6, 4), 0.3)
    x = torch.randn(16, 4)
    for imaginary, said in ((torch.randn(6, 4), False), (real.clone(), True)):
        path = tmp_path / f"{said}.db"
        run = train(Complex(torch.complex(real, imaginary)), (x,), path, steps=12)
        codes = [each.code for each in nethook.diagnose(run)]
        assert ("symmetric-init" in codes) is said


def test_batches_are_told_apart_by_both_parts():
    x = torch.complex(torch.ones(6), torch.arange(6.0))
    assert int(distinct(x)) == 6
    assert int(distinct(x.conj())) == 6
    assert int(distinct(torch.complex(torch.ones(6), torch.ones(6)))) == 1
    assert int(distinct(torch.tensor([2.0, 1.0, 2.0, 3.0]))) == 3
    # z and −z have one magnitude, and are as different as can be.
    assert float(spread(torch.tensor([[1 + 1j], [-1 - 1j]]))) == pytest.approx(1.0)
    assert float(spread(torch.tensor([[1.0], [-1.0]]))) == pytest.approx(1.0)


def test_what_is_sampled_of_a_huge_batch_costs_what_the_sample_costs():
    x = torch.randn(8, 1, 3).expand(8, HUGE, 3)
    assert int(distinct(x[..., 0])) == 8
    assert 0 < float(spread(x)) < 2
    assert int(distinct(torch.ones(1).expand(2**62))) == 1


def operands(prediction, target, **given):
    return Operands(prediction=prediction, target=target, **given)


def test_numbers_of_a_loss_of_huge_tensors():
    scores = torch.randn(4, 3, 1).expand(4, 3, HUGE)
    labels = torch.randint(0, 3, (4, 1)).expand(4, HUGE)
    found = numbers_of(operands(scores, labels, classes=1))
    numbers = unpacked(found.packed().tolist(), found.layout())
    guesses = scores[:, :, 0].argmax(1)
    assert numbers["accuracy"] == pytest.approx(
        float((guesses == labels[:, 0]).float().mean()), abs=0.01
    )
    values = torch.rand(6, 1).expand(6, HUGE)
    found = numbers_of(operands(values, values, space=PROBABILITIES))
    numbers = unpacked(found.packed().tolist(), found.layout())
    assert numbers["prediction"]["max"] == pytest.approx(float(values[:, 0].max()))
    assert numbers["error"] == 0.0
    assert numbers["correlation"] == pytest.approx(1.0)


def test_a_transposed_prediction_is_paired_with_its_target():
    prediction = torch.randn(300, 400)
    found = numbers_of(operands(prediction.T, prediction.T.contiguous()))
    numbers = unpacked(found.packed().tolist(), found.layout())
    assert numbers["error"] == 0.0


def test_reasons_for_nan_in_huge_operands():
    zeros = torch.tensor([0.0, 1.0])[:, None].expand(2, HUGE)
    assert (
        forward_reason("log", [zeros], None) == f"log of 0: {HUGE:,} of {2 * HUGE:,} elements are 0"
    )
    said = forward_reason("div", [zeros, torch.zeros(1)], None)
    assert said == f"0/0: {HUGE:,} elements are 0 in both operands"
    said = forward_reason("div", [torch.ones(HUGE // HUGE).expand(HUGE), torch.zeros(1)], None)
    assert said == "division by 0: 1 element of the divisor are 0"
    assert forward_reason("log", [torch.tensor([0j])], None) == "NaN from finite operands"
    assert "derivative of sqrt at 0" in backward_reason("sqrt", [zeros], [])


def test_parameters_that_no_forward_has_made_are_refused_by_name(tmp_path):
    model = nn.Sequential(nn.Linear(4, 4), nn.LazyLinear(3))
    with pytest.raises(InputsError, match=r"'1.weight' has no shape .* model\(inputs\)"):
        nethook.watch(model, to=tmp_path / "run.db")
    with pytest.raises(InputsError, match=r"'net.1.weight' has no shape"):
        nethook.watch({"net": model}, to=tmp_path / "run.db")
    assert list(tmp_path.iterdir()) == []
    model(torch.randn(2, 4))
    nethook.watch(model, to=tmp_path / "run.db").close()


def test_buffers_that_no_forward_has_made_are_no_hindrance(tmp_path):
    model = nn.Sequential(nn.Linear(4, 4), nn.LazyBatchNorm1d(affine=False))
    with nethook.watch(model, to=tmp_path / "run.db"):
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for _ in range(3):
            model(torch.randn(5, 4)).square().mean().backward()
            optimizer.step()
    assert nethook.open_run(tmp_path / "run.db").info["totals"]["steps"] == 3
