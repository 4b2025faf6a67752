"""The catalogue: each edit against the same change written by hand."""

import dataclasses

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from nethook import edits
from nethook.errors import EditError, OptionError


@pytest.fixture
def value():
    return torch.randn(2, 5, 4, generator=torch.Generator().manual_seed(0))


DIRECTION = torch.tensor([1.0, 2.0, 0.0, -1.0])


@pytest.mark.parametrize(
    ("edit", "by_hand"),
    [
        (edits.zero(), lambda v: v * 0),
        (edits.scale(0.5), lambda v: v / 2),
        (edits.scale(DIRECTION), lambda v: v * DIRECTION),
        (edits.add(3), lambda v: v + 3),
        (edits.add(DIRECTION), lambda v: v + DIRECTION),
        (edits.clamp(min=0), torch.relu),
        (edits.clamp(-1, 1), torch.nn.functional.hardtanh),
        (edits.clip_norm(1.0), lambda v: v / (v.norm() + 1e-6)),
        (edits.clip_norm(1e9), lambda v: v),
        (edits.clip_norm(1.0, norm_type=float("inf")), lambda v: v / (v.abs().max() + 1e-6)),
        (edits.replace(7.0), lambda v: torch.full_like(v, 7)),
        (edits.replace(DIRECTION), lambda v: DIRECTION.expand(v.shape)),
        (edits.steer(DIRECTION, 2.0), lambda v: v + 2 * DIRECTION),
        (
            edits.project_out(DIRECTION),
            lambda v: v - (v @ DIRECTION)[..., None] * DIRECTION / DIRECTION.square().sum(),
        ),
        (
            edits.erase(DIRECTION[:, None], DIRECTION[None], torch.ones(4)),
            lambda v: v - ((v - 1) @ DIRECTION)[..., None] * DIRECTION,
        ),
        (
            edits.swap_subspace(torch.ones(4), torch.eye(4)[:, :2]),
            lambda v: torch.cat([torch.ones_like(v[..., :2]), v[..., 2:]], -1),
        ),
        (edits.zero_units([0, -1]), lambda v: v * torch.tensor([0, 1, 1, 1, 0.0])[:, None]),
        (edits.keep_units([0, -1]), lambda v: v * torch.tensor([1, 0, 0, 0, 1.0])[:, None]),
        (edits.zero_units([1], dim=-1), lambda v: v * torch.tensor([1, 0, 1, 1.0])),
    ],
    ids=lambda each: type(each).__name__ if isinstance(each, edits.Edit) else "",
)
def test_an_edit_does_what_one_would_write(edit, by_hand, value):
    before = value.clone()
    torch.testing.assert_close(edit(value), by_hand(value))
    assert torch.equal(value, before)  # a new tensor, always


def test_project_out_leaves_nothing_along_the_direction(value):
    rest = edits.project_out(DIRECTION)(value) @ DIRECTION
    torch.testing.assert_close(rest, torch.zeros(2, 5), atol=1e-5, rtol=0)


def test_noise_with_a_seed_is_the_same_each_time_and_leaves_the_random_state_alone(value):
    state = torch.get_rng_state()
    one, two = edits.noise(0.1, seed=3)(value), edits.noise(0.1, seed=3)(value)
    assert torch.equal(one, two)
    assert torch.equal(torch.get_rng_state(), state)
    assert not torch.equal(edits.noise(0.1)(value), edits.noise(0.1)(value))


def test_noise_has_the_spread_that_was_asked():
    drawn = edits.noise(0.5, seed=0)(torch.zeros(100_000))
    assert drawn.std().item() == pytest.approx(0.5, rel=0.02)


def test_patch_takes_a_recorded_value_over_whole_or_in_part(value):
    other = torch.zeros_like(value)
    assert torch.equal(edits.patch(other)(value), other)
    patched = edits.patch(other, index=(slice(None), 3))(value)
    assert torch.equal(patched[:, 3], other[:, 3])
    assert torch.equal(patched[:, :3], value[:, :3])


def test_patch_takes_each_call_its_own_value(value):
    patch = edits.patch([value * 0, value * 1])
    assert torch.equal(patch(value, call=1), value)
    with pytest.raises(EditError, match=r"got 2 values. Limit the edit: calls=slice\(2\)"):
        patch(value, call=2)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float64])
@pytest.mark.parametrize(
    "edit",
    [
        edits.scale(DIRECTION),
        edits.add(DIRECTION),
        edits.replace(DIRECTION),
        edits.steer(DIRECTION),
        edits.project_out(DIRECTION),
        edits.clip_norm(1.0),
        edits.noise(0.1, seed=0),
    ],
    ids=lambda edit: type(edit).__name__,
)
def test_the_type_of_the_value_is_kept(edit, dtype, value):
    assert edit(value.to(dtype)).dtype == dtype


def test_what_does_not_fit_is_refused_with_both_shapes(value):
    with pytest.raises(EditError, match=r"broadcasts to \(2, 5, 4\); got \(3,\)"):
        edits.replace(torch.zeros(3))(value)
    with pytest.raises(EditError, match=r"last dimension, \(4,\); got \(3,\)"):
        edits.steer(torch.zeros(3))(value)
    with pytest.raises(EditError, match=r"shape of the value, \(2, 5, 4\); got \(1,\)"):
        edits.patch(torch.zeros(1))(value)
    with pytest.raises(EditError, match="5 units along dimension 1; got 5"):
        edits.zero_units([5])(value)


def test_arguments_are_checked_when_the_edit_is_made():
    with pytest.raises(OptionError, match="got None for both"):
        edits.clamp()
    with pytest.raises(OptionError, match="a slice of calls; got 'first'"):
        edits.zero(calls="first")


def test_edits_are_plain_data_that_can_be_printed_and_compared():
    assert repr(edits.scale(0.5, calls=2)) == "scale(calls=2, factor=0.5)"
    assert edits.scale(0.5) == edits.scale(0.5)
    assert edits.scale(0.5) != edits.scale(0.25)
    assert edits.scale(0.5) != edits.add(0.5)
    assert edits.steer(DIRECTION) == edits.steer(DIRECTION.clone())
    assert edits.steer(DIRECTION) != edits.steer(DIRECTION * 2)
    with pytest.raises(dataclasses.FrozenInstanceError):
        edits.scale(0.5).factor = 3


@given(units=st.sets(st.integers(0, 6)))
def test_zeroing_some_units_and_keeping_them_add_up_to_the_value(units):
    value = torch.arange(14.0).reshape(2, 7)
    both = edits.zero_units(sorted(units))(value) + edits.keep_units(sorted(units))(value)
    assert torch.equal(both, value)
