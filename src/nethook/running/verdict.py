"""What a run was like, in a few lines for a terminal or a log.

    for line in verdict_lines(run, style): print(line)

Findings are listed as they stand in the run file; before them stands what may be said of the run as
a whole (`doctor/verdict.py`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from nethook.doctor.verdict import Verdict, verdict_of
from nethook.runs import names
from nethook.runs.reading.layers import layers_that_ran
from nethook.runs.reading.losses.scores import ACCURACY, shown_scores
from nethook.runs.reading.losses.shown import LOGGED, shown_losses
from nethook.runs.reading.rank_file import Site
from nethook.runs.reading.results import EventRecord
from nethook.runs.reading.run import Run
from nethook.text.examined import examined_lines
from nethook.text.finding_lines import finding_lines
from nethook.text.findings import read_findings
from nethook.text.non_finite import non_finite_line
from nethook.text.numbers import ascii_number as number
from nethook.text.numbers import count as counted
from nethook.text.paragraphs import Style, wrapped
from nethook.text.watch_cost import watch_cost

_MANY: Final = 0.5  # share of dead units from which a layer is named ...
_BATCHES: Final = 4  # ... where at least this many batches were looked at
_HOLDERS: Final = ("ParameterDict", "ParameterList")  # in these no layer runs
_SAID: Final = ("no problems found", "too early to tell", "not judged")
"""States that have a line of their own; of the others other lines tell."""


def verdict_lines(
    run: Run,
    style: Style,
    *,
    error: str = "",
    interrupted: bool = False,
    rows: int | None = None,
) -> list[str]:
    """The lines of a verdict.

    Arguments:
        run: the run, closed.
        style: colours and width.
        error: what the script ended with, in one line.
        interrupted: whether that was Ctrl-C.
        rows: lines that there is room for; what does not fit is folded.
    """
    # Each is read from the file whenever it is asked for.
    info, sites, findings = run.info, run.sites, run.findings
    steps = _steps(run, info)
    lines = [*_what(run, info, sites, steps, style), *_numbers(run, style)]
    lines += examined_lines(info, style)
    lines += _events(run, style)
    lines += _unseen(sites, steps, style, info.get("totals"))
    lines += _silent(run, sites, style)
    verdict = verdict_of(run)
    if error:
        lines += _ending(verdict, error, interrupted, steps, style)
        lines += _just_before(run, style)
    elif verdict.state in _SAID:
        lines += _verdict(verdict, style)
    if findings:
        room = None if rows is None else rows - len(lines)
        lines += finding_lines(findings, style, info.get("tried"), rows=room)
    return lines


def _verdict(verdict: Verdict, style: Style) -> Iterator[str]:
    """What may be said of the run as a whole."""
    yield from wrapped(str(verdict), style, "good" if verdict.is_fine else "warning")


def course(run: Run) -> list[str]:
    """Where a run is, in a few words each, what matters most first; none before its first step."""
    info = run.info
    steps = _steps(run, info)
    if steps <= 0:
        return []
    parts = [f"nethook: step {steps:,}"]
    scalars = run.scalars
    losses = shown_losses(run, "train", scalars)
    parts += [f"{loss.label} {number(loss.last, 4)}" for loss in losses[:2]]
    serious = [one for one in read_findings(run.findings) if one.severity != "info"]
    if serious:
        more = f" and {len(serious) - 1} more" if len(serious) > 1 else ""
        parts.append(f"{serious[0].severity}: {serious[0].code}{more}")
    norm = scalars.get(names.GRAD_NORM)
    if norm is not None and len(norm):
        parts.append(f"gradient norm {number(float(norm.value[-1]), 4)}")
    return [*parts, *filter(None, [_cost(info)])]


# What ran


def _what(
    run: Run, info: Mapping[str, Any], sites: Sequence[Site], steps: int, style: Style
) -> Iterator[str]:
    models = info.get("models")
    parts = [_models(models), counted(len(layers_that_ran(sites)), "layer")]
    clock = {"backward": "backward passes", "forward": "forward passes"}.get(str(info.get("clock")))
    parts.append(f"{steps:,} {clock}" if clock else counted(steps, "step"))
    if cost := _cost(info):
        parts.append(cost)
    yield from wrapped(", ".join(filter(None, parts)), style)
    ranks = run.ranks
    if len(ranks) > 1:
        gone = [str(rank.rank) for rank in ranks if rank.state in ("missing", "unreadable", "died")]
        text = f"{len(ranks)} ranks"
        yield from wrapped(
            f"{text}, of which {', '.join(gone)} missing or cut off" if gone else text, style
        )


def _models(models: Any) -> str:
    """The models by name and class; the file may say anything."""
    shown = []
    for name, about in list(models.items())[:4] if isinstance(models, dict) else ():
        kind = about.get("type", "") if isinstance(about, dict) else about
        shown.append(f"{name} ({kind})" if name and kind and name != kind else f"{kind or name}")
    more = len(models) - len(shown) if shown else 0
    return " and ".join(shown) + (f" and {more} more" if more > 0 else "")


def _steps(run: Run, info: Mapping[str, Any]) -> int:
    totals = info.get("totals")
    if isinstance(totals, dict) and isinstance(totals.get("steps"), int):
        return int(totals["steps"])
    return max((rank.last_step + 1 for rank in run.ranks), default=0)


def _cost(info: Mapping[str, Any]) -> str:
    said = watch_cost(info)
    return f"watching cost {said}" if said else ""


# Numbers


def _numbers(run: Run, style: Style) -> Iterator[str]:
    losses = shown_losses(run)
    for phase, most in (("train", 4), ("eval", 2)):
        of_phase = [loss for loss in losses if loss.phase == phase]
        for loss in of_phase[:most]:
            ends = " → ".join(number(value, 4) for value in loss.ends)
            yield from wrapped(f"{loss.label} {ends}  ({loss.source})", style)
        if len(of_phase) > most:
            yield f"and {len(of_phase) - most} more {of_phase[0].label}es"
    yield from _scores(run, style)


def _scores(run: Run, style: Style) -> Iterator[str]:
    """Scores of evaluations, by the line that compares answers with labels."""
    for score in list(shown_scores(run.scalars).values())[:2]:
        ends = " → ".join(number(value, 4) for value in score.ends)
        yield from wrapped(f"{ACCURACY} {ends}  ({score.line})", style)


# What happened


def _ending(
    verdict: Verdict, error: str, interrupted: bool, steps: int, style: Style
) -> Iterator[str]:
    """How the script ended: the last line of its traceback, or Ctrl-C."""
    after = f"after {counted(steps, 'step')}"
    if verdict.state == "interrupted":
        yield from _verdict(verdict, style)
    elif interrupted:
        yield from wrapped(f"interrupted: by Ctrl-C {after}", style, "warning")
    else:
        yield from wrapped(f"crashed: {error} ({after})", style, "error")


def _just_before(run: Run, style: Style) -> Iterator[str]:
    """The last numbers of the run."""
    last = []
    scalars = run.scalars
    courses = [
        (f"{loss.label} ({loss.name})", loss.value)
        for loss in shown_losses(run, "train", scalars)
        if loss.counted != LOGGED
    ]
    courses += [
        (said, scalars[name].value)
        for name, said in ((names.GRAD_NORM, "gradient norm"), (names.UPDATE_RATIO, "update ratio"))
        if name in scalars and len(scalars[name])
    ]
    for what, course in courses:
        last.append(f"{what} {', '.join(number(float(value), 4) for value in course[-3:])}")
    if last:
        yield from wrapped("just before: " + "; ".join(last[:4]), style)


def _events(run: Run, style: Style) -> Iterator[str]:
    seen = set[str]()
    events = run.events
    for event in events:
        if event.kind in (names.NON_FINITE, names.FAILED) and event.kind not in seen:
            seen.add(event.kind)
            level = "error" if event.kind == names.NON_FINITE else "warning"
            yield from wrapped(_event(event), style, level)
    skipped = [event for event in events if event.kind == names.STEP_SKIPPED]
    count = sum(1 + event.repeats for event in skipped)
    if count:
        yield f"{counted(count, 'step')} left out by the loss scaler"


def _event(event: EventRecord) -> str:
    if event.kind == names.FAILED:
        return (
            f"a part of watching failed at step {event.step} and was switched off: {event.message}"
        )
    return non_finite_line(event.step, event.address, event.message, event.data)


def _unseen(
    sites: Sequence[Site], steps: int, style: Style, totals: object = None
) -> Iterator[str]:
    """Layers of which no call was seen although the model was trained."""
    leaves = [site for site in sites if site.info.get("leaf")]
    of_each = [site.info.get("calls") for site in leaves]
    calls = [sum(counts.values()) for counts in of_each if isinstance(counts, dict)]
    if calls and not any(calls) and steps > 0:
        # What holds parameters and has no forward is no layer.
        elsewhere = all(site.kind in _HOLDERS for site in leaves)
        loose = {site.kind for site in sites if site.address == ""} == {"LooseTensors"}
        why = "the model has none as submodules" if elsewhere else "they run in compiled code"
        if loose:
            why = "the tensors that are trained belong to no module"
        elif isinstance(totals, dict) and totals.get("forwards") == totals.get("backwards") == 0:
            why = "the model was not called"
        yield from wrapped(
            f"No call of a layer was seen: {why}. Of outputs and their gradients nothing is in the "
            "run; of parameters everything is.",
            style,
        )


def _silent(run: Run, sites: Sequence[Site], style: Style) -> Iterator[str]:
    """Rectifiers of which many units were dead all through the last quarter of training."""
    kept = {info.address for info in run.catalogue if info.units and info.quantity == names.OUTPUTS}
    silent = []  # address, units that were dead, all of them, and the first step of that quarter
    for site in sites:
        if site.address in kept and site.info.get("activation") == "rectifier":
            units = run.units(site.address)
            last = int(units.last_step[-1]) if len(units) else -1
            start = last - last // 4
            active = units.active[units.last_step >= start].any(axis=0)
            dead = int((~active).sum())
            if dead >= _MANY * active.size:
                silent.append((site.address, dead, active.size, start))
    every = run.many([(address, names.OUTPUTS) for address, *_ in silent]) if silent else []
    layers = [
        f"{dead} of {size} of {address!r}"
        for (address, dead, size, start), series in zip(silent, every, strict=True)
        # One batch says nothing of a unit, and under a budget not every step was measured.
        if int(series.seen[series.last_step >= start].sum()) >= _BATCHES
    ]
    if layers:
        more = f" and {len(layers) - 4} more layers" if len(layers) > 4 else ""
        shown = ", ".join(layers[:4])
        yield from wrapped(
            f"units that were dead all through the last quarter: {shown}{more}", style
        )
