"""The native kernel packs windows as numpy does, to the last bit."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nethook.runs.format.levels import Group, unpack_courses
from nethook.runs.format.packing import pack, unpack
from nethook.runs.format.records import Basis, pack_rows
from nethook.runs.writing.writer import RunWriter
from nethook.stats.fields import FIELDS, INDEX, empty_rows
from nethook.stats.native import binding, kernel
from nethook.stats.sheet import layout_of
from nethook.watching.series import Catalogue


def both(make):
    """What a function gives with the kernel, and without."""
    with np.errstate(all="ignore"), pytest.MonkeyPatch.context() as patch:
        found = make()
        for each in (kernel, binding):
            patch.setattr(each, "functions", None)
        return found, make()


def some_rows(seed, series):
    """Rows as kernels write them, of all magnitudes, and some that are odd or empty."""
    rng = np.random.default_rng(seed)
    rows = empty_rows(series)
    for row in rows:
        kind = rng.integers(5)
        if kind == 0:
            continue
        scale = 10.0 ** rng.integers(-30, 30)
        tensors = rng.integers(1, 4)
        values = {
            "tensors": tensors, "count": 100 * tensors, "zeros": rng.integers(50),
            "mean": rng.normal() * scale, "m2": 0 if kind == 3 else abs(rng.normal()) * scale**2,
            "near_low": rng.integers(9), "near_high": rng.integers(9), "bounded": rng.integers(9),
            "binned": 64 * tensors, "units": 7, "active": rng.integers(8),
        }  # fmt: skip
        values["mean_low"] = values["mean"] * 1e-17
        values["min"], values["max"] = values["mean"] - scale, values["mean"] + scale
        if kind == 2:
            values |= {name: rng.integers(3) for name in ("nan", "posinf", "neginf")}
        if kind == 4:
            values |= {"nan": values["count"], "min": np.inf, "max": -np.inf}
        for name, value in values.items():
            row[INDEX[name]] = value
    return rows


@settings(max_examples=40)
@given(st.integers(0, 2**31), st.integers(1, 200))
def test_records_are_the_same(seed, series):
    rows = some_rows(seed, series)
    seen = np.random.default_rng(seed).integers(0, 3, series)
    basis = Basis()
    for at in range(series):
        basis.add(at % 8)
    basis.learn(rows)
    with_kernel, without = both(lambda: list(pack_rows(rows, seen, basis)))
    assert with_kernel == without
    assert len(with_kernel) <= (series + 63) // 64


NUMBERS = st.one_of(
    st.floats(width=32),
    st.floats(),
    st.integers(-(2**63), 2**63).map(float),
    st.sampled_from([0.0, -0.0, 1.0, -1.0, 127.0, 128.0, 255.0, 256.0, -128.0, -129.0, 2.0**62]),
)


@settings(max_examples=300)
@given(st.data())
def test_any_matrix_is_packed_the_same(data):
    rows, columns = data.draw(st.integers(0, 12)), data.draw(st.integers(1, 4))
    each = [
        data.draw(st.one_of(st.lists(NUMBERS, min_size=rows, max_size=rows), st.just([x] * rows)))
        for x in (data.draw(NUMBERS) for _ in range(columns))
    ]
    matrix = np.array(each, dtype=np.float64).reshape(columns, rows).T
    worth = data.draw(st.sampled_from([0, 0.97]))
    with_kernel, without = both(lambda: pack(matrix, worth))
    assert with_kernel == without
    found = unpack(with_kernel, columns=columns, max_rows=12)
    # A NaN has many patterns, of which one is kept.
    assert np.array_equal(found, matrix, equal_nan=True)
    assert np.array_equal(np.signbit(found), np.signbit(matrix)) or np.isnan(matrix).any()


@settings(max_examples=40)
@given(st.integers(0, 2**31), st.integers(1, 150), st.integers(0, 30))
def test_overviews_are_the_same(seed, series, more):
    def make():
        group = Group()
        for at in range(4):
            group.add_rows(some_rows(seed + at, series + (more if at > 1 else 0)))
        return group.course, list(group.pack())

    (course, packed), (other, otherwise) = both(make)
    np.testing.assert_array_equal(course, other)
    # A NaN has a sign, which depends on who made it, and means nothing.
    assert [block for block, _ in packed] == [block for block, _ in otherwise]
    for (block, mine), (_, theirs) in zip(packed, otherwise, strict=True):
        ((_, places, shown),) = unpack_courses([mine], block, series + more)
        ((_, known, numbers),) = unpack_courses([theirs], block, series + more)
        np.testing.assert_array_equal(places, known)
        np.testing.assert_array_equal(shown, numbers)


def test_a_sheet_says_the_same_with_the_kernel_and_without(tmp_path):
    import torch

    def make():
        name = "native" if binding.functions else "plain"
        with RunWriter(tmp_path / f"{name}.db") as writer:
            catalogue = Catalogue(writer, 8)
            rows = catalogue.new_rows()
            slots = []
            for at in range(4):
                row = catalogue.row(f"s{at}", "outputs")
                slots.append(rows.slot(row, unit_dim=-1 if at else None))
            found = []
            for step in range(3):
                for at, slot in enumerate(slots[: 2 + step]):
                    slot.fold(torch.arange(12.0).reshape(4, 3) - at - step)
                    slot.fold(torch.zeros(2, 3))
                rows.step_ended()
                rows.sheet.add_step(step)
                found.append(catalogue.close(rows, "train", carries=step != 1))
            assert rows.matrix[:, INDEX["tensors"]].sum() == 0
            assert rows.histograms.sum() == 0
            assert not any(slot.bits.any() for slot in slots[1:])
            return found

    kernel, plain = both(make)
    for mine, other in zip(kernel, plain, strict=True):
        for field in ("rows", "seen", "bits", "histograms"):
            np.testing.assert_array_equal(getattr(mine, field), getattr(other, field))
    assert [window.carries for window in kernel] == [True, False, True]
    # Those of the second window are in the third: none is lost.
    assert kernel[1].histograms.sum() == 0
    binned = [window.rows[:, INDEX["binned"]].sum() for window in kernel]
    assert kernel[0].histograms.sum() == binned[0]
    assert kernel[2].histograms.sum() == binned[1] + binned[2]


def test_a_sheet_makes_room_for_the_units_of_series_that_are_new(tmp_path):
    import torch

    with RunWriter(tmp_path / "run.db") as writer:
        catalogue = Catalogue(writer, 4)
        rows = catalogue.new_rows()
        assert len(rows.sheet.layout) == 0
        rows.slot(catalogue.row("a", "outputs"), unit_dim=0).fold(torch.ones(5))
        # Another phase has made the series known meanwhile; the sheet is older than that.
        catalogue.identify(np.array([0]), rows.slots)
        rows.step_ended()
        window = catalogue.close(rows, "train")
        assert window.layout == layout_of([5])
        assert window.in_order()[0][0, FIELDS.index("count")] == 5
        assert window.bits.tolist() == [1] * 5
