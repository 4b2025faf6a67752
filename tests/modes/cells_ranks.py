"""Several ranks: DDP, FSDP2 and tensor parallel, with two processes that talk by gloo.

What the ranks do is in `ranks_program`; here is what is expected of it. The numbers of a watch are
compared with those of one process that has all samples.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import torch

import nethook
from tests.modes import ranks_program as program
from tests.modes.matrix import cell, mode
from tests.modes.steps import batches, network, patched, train, watching
from tests.modes.two_ranks import STEPS, checked, outcome, run_path

AS_TRACE = "as `trace`, of which it is made"
ONLY_WATCH = dict.fromkeys(("trace", "edit", "features"), "as in the first row")
LOCAL = ("outputs", "grads")
OF_PARAMETERS = ("params", "param_grads", "updates")

DDP = mode("DDP", "`DistributedDataParallel`", "each rank has a share of the samples")
INNER = mode("DDP", "`DDP(model, static_graph=True)`", "watched before it is wrapped", **ONLY_WATCH)
NO_SYNC = mode(
    "DDP", "`no_sync`, `find_unused_parameters=True`", "accumulation over micro-batches",
    **ONLY_WATCH,
)  # fmt: skip
JOIN = mode("DDP", "`Join`", "10 steps on one rank, 7 on the other", **ONLY_WATCH)
ONE = mode("DDP", "one rank of two", "the other is not watched", **ONLY_WATCH)
DEAD = mode("DDP", "a rank that dies", "killed in the middle of a step", **ONLY_WATCH)
FSDP = mode("FSDP2", "`fully_shard`", "each rank holds a shard of every parameter")
FSDP_BEFORE = mode(
    "FSDP2", "`fully_shard` after `watch`", "sharded while it is watched", **ONLY_WATCH
)
FSDP_KEPT = mode(
    "FSDP2",
    "`reshard_after_forward=False`",
    "parameters stay gathered until backward",
    **ONLY_WATCH,
)
FSDP_MIXED = mode("FSDP2", "`MixedPrecisionPolicy`", "bfloat16, reduced in float32", **ONLY_WATCH)
COLLECTIVES = mode(
    "FSDP2",
    "collectives",
    "the same number with and without nethook, also for DDP and tensor parallel",
    **ONLY_WATCH,
)
PARALLEL = mode("Tensor parallel", "`parallelize_module`", "layers are split by columns and rows")
PARALLEL_BEFORE = mode(
    "Tensor parallel",
    "`parallelize_module` after `watch`",
    "split while it is watched",
    **ONLY_WATCH,
)


@cache
def _joined() -> dict[Any, Any]:
    """One process with all samples."""
    model = network("mlp")
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    with watching(model, optimizer, batches=0) as rows:
        train(model, batches("mlp"), optimizer)
    return rows


def _numbers(run: Any, address: str, quantity: str) -> dict[str, Any]:
    series = run.series(address, quantity)
    names = ("count", "nan", "zeros", "mean", "std", "min", "max")
    return {name: np.asarray(series[name]) for name in names} | {"coverage": series.coverage}


def _as_one(
    name: str, quantities: tuple[str, ...], *, rtol: float = 2e-5, atol: float = 1e-6,
    counts: bool = True,
) -> None:  # fmt: skip
    """The ranks' summaries, merged when they are read, are those of one process."""
    outcome(name)
    expected = _joined()
    with nethook.open_run(run_path(name)) as run:
        assert [event.message for event in run.events if event.kind == "watch-failed"] == []
        assert [rank.state for rank in run.ranks] == ["finished", "finished"]
        keys = [key for key in expected if key[1] in quantities and key[0]]
        assert len(keys) >= 3 * len(quantities)
        for key in keys:
            ours = _numbers(run, *key)
            assert (ours["coverage"] == 1).all(), key
            if counts:
                np.testing.assert_array_equal(ours["count"], expected[key]["count"], f"{key}")
            for field in ("mean", "std", "min", "max"):
                np.testing.assert_allclose(
                    ours[field], expected[key][field], rtol, atol, err_msg=f"{key} {field}"
                )
        norm = run.series("@loop", "grad_norm")["mean"]
        np.testing.assert_allclose(norm, expected["@loop", "grad_norm"]["mean"], rtol=rtol)
        logged = run.scalars["grad_norm"].value
        np.testing.assert_allclose(logged, expected["@loop", "grad_norm"]["mean"], rtol=rtol)


def _ddp(name: str) -> None:
    _as_one(name, (*LOCAL, *OF_PARAMETERS))
    first, second = outcome(name)
    assert first == second
    with nethook.open_run(run_path(name)) as run:
        marks = [run.rank(rank).scalars["params_fingerprint"].value for rank in (0, 1)]
        np.testing.assert_array_equal(*marks)
        codes = {finding.code for finding in nethook.diagnose(run_path(name))}
        assert "replica-divergence" not in codes


def _no_sync(name: str) -> None:
    # Micro-batches have losses of their own: their gradients are twice as large by mean, and half.
    _as_one(name, ("outputs", *OF_PARAMETERS, "grads"))
    with nethook.open_run(run_path(name)) as run:
        np.testing.assert_array_equal(run.series("@loop", "backwards")["mean"], [2.0] * STEPS)


WITHOUT_AVERAGE = "gradients of outputs are twice those of one process"
cell("watch", DDP, "mlp", guard=program.not_averaged, without=WITHOUT_AVERAGE, elsewhere=True)(
    checked(_ddp, "ddp_watch")
)
cell("watch", INNER, "mlp", guard=program.not_averaged, without=WITHOUT_AVERAGE, elsewhere=True)(
    checked(_ddp, "ddp_inner")
)
cell("watch", NO_SYNC, "mlp", guard=program.not_averaged, without=WITHOUT_AVERAGE, elsewhere=True)(
    checked(_no_sync, "ddp_no_sync")
)


def _all_true(name: str) -> None:
    for rank in outcome(name):
        assert rank
        assert all(rank), rank


WRAPPED = "addresses begin with `module.`"
for _feature in ("trace", "edit", "features"):
    cell(_feature, DDP, "mlp", guard=program.wrappers_count, without=WRAPPED, elsewhere=True)(
        checked(_all_true, f"ddp_{_feature}")
    )


def _every_rank_binds() -> Any:
    def axis(firsts: Any, lasts: Any) -> Any:
        from nethook.runs.reading.comparing.align import common_axis

        early = min(int(last.max()) for last in lasts if len(last))
        return common_axis(firsts, [np.minimum(last, early) for last in lasts])

    return patched("nethook.runs.reading.run.common_axis", axis)


@cell(
    "watch",
    JOIN,
    "mlp",
    guard=_every_rank_binds,
    without="the additional steps of the longer rank are lost",
)
def uneven_ranks(model: str) -> None:
    assert outcome("ddp_join") == (10, 7)
    with nethook.open_run(run_path("ddp_join")) as run:
        assert [rank.last_step for rank in run.ranks] == [9, 6]
        series = run.series("0", "outputs")
        np.testing.assert_array_equal(series["count"], [8 * 16.0] * 7 + [4 * 16.0] * 3)
        np.testing.assert_array_equal(series.last_step, np.arange(10))
        assert (run.series("0.weight", "params")["count"] == 160).all()


def _nobody_is_missed() -> Any:
    return patched("nethook.runs.reading.run.Run._expected", lambda self, windows, phase: 1)


@cell("watch", ONE, "mlp", guard=_nobody_is_missed, without="the missing rank is not noticed")
def only_one_rank_is_watched(model: str) -> None:
    first, second = outcome("ddp_one_watched")
    assert first == second == outcome("ddp_watch")[0]  # training is what it was
    with nethook.open_run(run_path("ddp_one_watched")) as run:
        assert [rank.state for rank in run.ranks] == ["finished", "missing"]
        assert (run.series("0", "outputs").coverage == 0.5).all()
        assert (run.series("0.weight", "params").coverage == 1).all()  # every rank has all of it


def _everyone_lives() -> Any:
    return patched("nethook.runs.reading.run.is_alive", lambda mark, beat: True)


@cell("watch", DEAD, "mlp", guard=_everyone_lives, without="the dead rank seems to be alive")
def a_rank_dies(model: str) -> None:
    outcome("ddp_watch")
    with nethook.open_run(run_path("died")) as run:
        assert [rank.state for rank in run.ranks] == ["finished", "died"]
        dead = run.rank(1).series("0", "outputs")
        assert 1 <= len(dead) <= 5  # what was written by then
        assert (dead["count"] == 8 * 16 * dead.steps).all()
        whole = run.series("0", "outputs").total()["count"]
        assert whole == 8 * 16 * (5 + dead.steps.sum())


# -- FSDP2 ----------------------------------------------------------------------------------------


def _fsdp(name: str) -> None:
    _as_one(name, (*LOCAL, *OF_PARAMETERS))
    with nethook.open_run(run_path(name)) as run:
        assert run.info["sharded"] is True
        assert "params_fingerprint" not in run.scalars  # each rank has something else
        marks = [run.rank(rank).scalars for rank in (0, 1)]
        assert ["params_fingerprint:0of2" in each for each in marks] == [True, False]
        site = next(each for each in run.sites if each.address == "0.weight")
        assert (site.info["shape"], site.info["local_shape"]) == ([16, 10], [8, 10])


def _fsdp_mixed(name: str) -> None:
    _as_one(name, (*LOCAL, *OF_PARAMETERS), rtol=0.1, atol=5e-3)
    with nethook.open_run(run_path(name)) as run:
        kinds = {each.address: each.info.get("dtype") for each in run.sites}
        assert (kinds["0"], kinds["0.weight"]) == ("bfloat16", "float32")


def _counted(name: str) -> None:
    for counts in outcome(name):
        assert len(counts) == 3
        for without, with_watch in counts.values():
            assert without == with_watch > 0


SHARDS = "parameters are not measured"
for _mode, _name, _check, _guard in (
    (FSDP, "fsdp_after", _fsdp, program.shards_are_asked),
    (FSDP_BEFORE, "fsdp_before", _fsdp, program.parameters_stay),
    (FSDP_KEPT, "fsdp_not_resharded", _fsdp, program.shards_are_asked),
    (FSDP_MIXED, "fsdp_mixed", _fsdp_mixed, program.shards_are_asked),
):
    cell("watch", _mode, "mlp", guard=_guard, without=SHARDS, elsewhere=True)(
        checked(_check, _name)
    )
cell(
    "watch", COLLECTIVES, "mlp", guard=program.ranks_wait,
    without="a watch that asks other ranks adds collectives", elsewhere=True,
)(checked(_counted, "collectives"))  # fmt: skip


def _says_why(name: str) -> None:
    for same, said in outcome(name):
        assert all(same)
        assert "FSDP2 (fully_shard) computes the gradient of a shard by itself" in said


for _feature in ("trace", "edit"):
    cell(
        _feature, FSDP, "mlp", guard=program.no_shards_known,
        without="gradients of parameters are missing, and a wrong reason is given",
        elsewhere=True,
    )(checked(_says_why, f"fsdp_{_feature}"))  # fmt: skip
cell(
    "features", FSDP, "mlp", guard=program.hooks_are_inert, without="nothing is read",
    elsewhere=True,
)(checked(_all_true, "fsdp_features"))  # fmt: skip

# -- tensor parallel ------------------------------------------------------------------------------


def _parallel(name: str) -> None:
    _as_one(name, ("outputs", "grads"), counts=False)  # what all ranks have counts for each
    _as_one(name, OF_PARAMETERS)
    with nethook.open_run(run_path(name)) as run:
        marks = [run.rank(rank).scalars["params_fingerprint"].value for rank in (0, 1)]
        np.testing.assert_array_equal(*marks)  # of what is not split: the second bias


for _mode, _name, _guard, _without in (
    (PARALLEL, "parallel_after", program.shards_are_asked, SHARDS),
    (PARALLEL_BEFORE, "parallel_before", program.taps_stay, "a sum over ranks is not measured"),
):
    cell("watch", _mode, "mlp", guard=_guard, without=_without, elsewhere=True)(
        checked(_parallel, _name)
    )
for _feature, _guard in (
    ("trace", program.hooks_are_inert),
    ("edit", program.edits_are_inert),
    ("features", program.hooks_are_inert),
):
    cell(_feature, PARALLEL, "mlp", guard=_guard, without="nothing is seen", elsewhere=True)(
        checked(_all_true, f"parallel_{_feature}")
    )
