"""From a watched training to sinks: order, failures, slowness."""

from __future__ import annotations

import os
import threading
import time

import pytest
import torch
from torch import nn

import nethook
from nethook.errors import OptionError
from nethook.runs.writing.queue import Delivery
from nethook.sinks.feed import Feed


class Noted(nethook.sinks.Sink):
    """Keeps all that it is told."""

    name = "noted"

    def __init__(self, **options):
        super().__init__(**options)
        self.calls = []
        self.threads = set()

    def _note(self, *call):
        self.calls.append(call)
        self.threads.add(threading.current_thread().name)

    def begin(self, facts):
        self._note("begin", facts)

    def scalars(self, step, values):
        self._note("scalars", step, dict(values))

    def histogram(self, step, name, counts, edges):
        self._note("histogram", step, name, counts, edges)

    def finding(self, finding):
        self._note("finding", finding)

    def end(self, verdict, report):
        self._note("end", verdict, report, report is not None and report.exists())

    def of(self, kind):
        return [call[1:] for call in self.calls if call[0] == kind]


def train(path, *sinks, steps=15, rate=0.1, pause=0.0, **options):
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=rate)
    losses = []
    with nethook.watch(model, optimizer, path, budget=None, sinks=list(sinks), **options) as watch:
        watch.be_silent()
        for _ in range(steps):
            x = torch.randn(8, 4)
            loss = nn.functional.mse_loss(model(x), x[:, :1])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
            time.sleep(pause)
    return losses


def events(path):
    with nethook.open_run(path) as run:
        return [event.message for event in run.events if event.kind == "sink-failed"]


def test_a_sink_is_told_in_order_and_by_its_own_thread(tmp_path):
    sink = Noted(every=0)
    losses = train(tmp_path / "run.db", sink)
    assert sink.threads == {"nethook-sinks"}
    kinds = [call[0] for call in sink.calls]
    assert kinds[0] == "begin"
    assert kinds[-1] == "end"
    assert kinds.count("begin") == kinds.count("end") == 1
    [(facts,)] = sink.of("begin")
    assert (facts.name, facts.path, facts.model) == ("run", tmp_path / "run.db", "Sequential")
    [name] = [tag for tag in sink.of("scalars")[-1][1] if tag.startswith("loss/")]
    seen = [(step, values[name]) for step, values in sink.of("scalars") if name in values]
    assert [step for step, _ in seen] == list(range(15))
    assert [value for _, value in seen] == pytest.approx(losses, rel=1e-6)
    [(verdict, report, _)] = sink.of("end")
    with nethook.open_run(tmp_path / "run.db") as run:
        from nethook.doctor.verdict import verdict_of

        assert verdict == str(verdict_of(run))
    assert report is None
    with nethook.open_run(tmp_path / "run.db") as run:
        assert run.info["sinks"]["names"] == ["noted"]
        assert run.info["sinks"]["seconds"] >= 0
    assert not sink.of("histogram")
    assert not events(tmp_path / "run.db")


def test_few_are_few_and_all_are_all(tmp_path):
    few, everything = Noted(), Noted(detail="all")
    train(tmp_path / "run.db", few, everything)
    tags = set().union(*(values for _, values in few.of("scalars")))
    assert {tag.split("/")[0] for tag in tags} == {"loss", "scalars", "block", "layer"}
    assert len(tags) < 20
    more = set().union(*(values for _, values in everything.of("scalars")))
    assert more > tags
    assert {"outputs/0.std", "param_grads/2.weight.max"} <= more
    with nethook.open_run(tmp_path / "run.db") as run:
        stored = run.histograms("0.weight", "params").counts.sum(axis=0)
    sent = sum(call[2] for call in everything.of("histogram") if call[1] == "params/0.weight")
    assert (sent == stored).all()


def test_findings_are_told_once(tmp_path):
    sink = Noted()
    train(tmp_path / "run.db", sink, steps=24, rate=1e6)
    codes = [finding.code for (finding,) in sink.of("finding")]
    with nethook.open_run(tmp_path / "run.db") as run:
        assert sorted(codes) == sorted({str(each["code"]) for each in run.findings})
    assert codes


class Broken(Noted):
    def __init__(self, at, **options):
        super().__init__(**options)
        self._at = at

    def _note(self, *call):
        super()._note(*call)
        if call[0] == self._at:
            raise ConnectionError("the tracker is gone\n  for good")


@pytest.mark.parametrize("at", ["begin", "scalars", "end"])
def test_a_sink_that_fails_is_off_and_said_once(tmp_path, at):
    broken, other = Broken(at, every=0), Noted(every=0)
    train(tmp_path / "run.db", broken, other)
    assert [call[0] for call in broken.calls].count(at) == 1
    assert broken.calls[-1][0] == at
    assert events(tmp_path / "run.db") == [
        "the sink noted is off: ConnectionError: the tracker is gone for good"
    ]
    assert len(other.of("scalars")) >= 15
    assert other.of("end")


class Unjoinable(Noted):
    def join(self):
        raise RuntimeError("no")


def test_one_that_cannot_join_is_off_from_the_start(tmp_path):
    sink = Unjoinable()
    train(tmp_path / "run.db", sink)
    assert sink.calls == []
    assert events(tmp_path / "run.db") == ["the sink noted is off: RuntimeError: no"]


class Slow(Noted):
    def scalars(self, step, values):
        time.sleep(0.05)
        super().scalars(step, values)


def test_a_slow_sink_costs_the_run_file_nothing(tmp_path):
    sink = Slow(every=0)
    train(tmp_path / "run.db", sink, steps=20)
    with nethook.open_run(tmp_path / "run.db") as run:
        series = run.series("0", "outputs")
        assert series.steps.sum() == series.seen.sum() == 20
    assert sink.of("scalars")[-1][0] == 19  # the end waits for it


def test_points_are_folded_between_two_moments(tmp_path):
    sink = Noted(every=60)
    losses = train(tmp_path / "run.db", sink)
    seen = sink.of("scalars")
    assert len(seen) <= 3  # at the beginning, and the rest at the end
    assert seen[-1][0] == 14
    [name] = [tag for tag in seen[-1][1] if tag.startswith("loss/")]
    assert min(losses) <= seen[-1][1][name] <= max(losses)


class WithReport(Noted):
    wants_report = True


def test_a_report_is_made_for_those_who_want_one(tmp_path):
    sink = WithReport()
    train(tmp_path / "run.db", sink)
    [(_, report, was_there)] = sink.of("end")
    assert was_there
    assert report.name == "run.html"
    assert not report.exists()  # afterwards it is gone


def test_a_run_that_goes_on_knows_its_series(tmp_path):
    train(tmp_path / "run.db", Noted())
    sink = Noted(every=0)
    train(tmp_path / "run.db", sink, resume=True)
    tags = set().union(*(values for _, values in sink.of("scalars")))
    assert {"block/0/grad_norm", "block/2/update_ratio"} <= tags
    assert sink.of("scalars")[-1][0] == 29


def test_what_is_no_sink_is_refused_before_anything_is_written(tmp_path):
    with pytest.raises(OptionError, match="`sinks` must be some of"):
        train(tmp_path / "run.db", "no-such-tracker")
    assert not (tmp_path / "run.db").exists()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_a_forked_child_neither_sends_nor_waits(tmp_path):
    sink = Noted(every=0)
    train(tmp_path / "first.db", Noted())
    feed = Feed([sink])
    feed.opened(tmp_path / "first.db", {}, lambda *_: None)
    feed.heard(Delivery())
    child = os.fork()
    if child == 0:
        began = time.monotonic()
        feed.drain()
        feed.end()
        os._exit(int(time.monotonic() - began > 5))
    _, status = os.waitpid(child, 0)
    assert status == 0
    feed.end()
    assert sink.of("end")
