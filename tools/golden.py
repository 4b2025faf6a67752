"""Compares what two versions of nethook record of the same training scripts, field by field.

    python -m tools.golden v0.1.0                     all scripts of tests/scripts
    python -m tools.golden v0.1.0 plain.py gan.py     these
    python -m tools.golden v0.1.0 --budget 3%         with a budget: what is never thinned
    python -m tools.golden v0.1.0 --here v0.1.0       two runs of one version: what is noise?

Each script runs under `nethook run`, once with the sources of a revision and once with those of
this folder, in the same environment. Both run files are read by this folder's nethook and compared:
what ran, sites, every number of every series, histograms, active units, scalars, snapshots, losses,
findings, events. Left out are times and the words of events.

A script is `equal`; `changed`, where it differs in what `CHANGED` or `ADDED` list, with the reason;
or it `DIFFERS`, and then the exit code is 1: also where neither version has recorded a run. A
script of which the release recorded something wrong (`MENDED`) is compared with a later commit as
well. The last line counts each.
"""

# ruff: noqa: T201  (a program that prints for people)

from __future__ import annotations

import argparse
import io
import math
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

ROOT: Final = Path(__file__).resolve().parent.parent
KEPT: Final = ROOT / "build" / "golden"
# Tags do not travel with every clone, commits of the history do. A tag that git knows comes first.
RELEASED: Final[dict[str, str]] = {
    "v0.1.0": "3d9dddd432e948fbc512a745b9c33ddfbcd6ce54",
}

# Numbers that two runs of one version do not agree on either.
TIMES: Final = re.compile(
    r"(^|\.)(started|ended|finished|time|seconds|beat|pid|host\w*|python|platform|command|path|git|versions?"
    r"|sessions|cost|\w*overhead|packages|devices|nethook|torch|script|cwd|argv|revision|dirty|folder)"
    r"(\.|$)|_seconds|seconds_|watch_share|anchor"
)
# What later versions record otherwise on purpose: a pattern of paths, and the reason.
CHANGED: Final[dict[str, str]] = {
    r"\.findings$": "rules were added; which each script may have, its test says",
    r"\.findings\[\d+\]\.(message|fix)$": "findings are worded in plain English since 0.1",
    r"\.scalars\.eval_loss:": "an evaluation pass is a point of its losses since 0.1",
    r"\.scalars\.loss:acc(umulation|elerator)\.py": "divided micro-batches are summed since 0.1",
    r"\.scalars\.(batch|params)_fingerprint\b": "fingerprints read eight times as many words",
    r"\.series\.@loss:loss_utils\.py:\d+ loss eval\.": "a sum divided after its call is a mean",
    r"\.info\.(diagnosis\.checks|examined)$": "rules and examinations were added",
}
NEW_FACTS: Final = "facts that new rules of the doctor read"
L1_FACTS: Final = "targets and predictions of losses that 0.1 read none of, such as l1"
# What later versions record besides, and the release does not have at all.
ADDED: Final[dict[str, str]] = {
    r"\.events\[\d+\]\[3\]\.(line|lines|schedulers)$": "events name the lines of the script",
    r"\.events\[\d+\]\[3\]\.planned$": NEW_FACTS,
    r"\.events\[\d+\]\[3\]\.replayed$": "the event of the first NaN names the operation",
    r"\.findings\[\d+\](\.consequences\[\d+\])?\.lines$": "findings name the lines of the script",
    r"\.info\.(examined|examination)$": "the network is examined on copies",
    r"\.info\.diagnosis\.checks$": "a verdict says what was checked",
    r"\.info\.launch$": "runs of one launch are listed together",
    r"\.info\.(graph|loaders|loaded|seen|evaluation_sizes)$": NEW_FACTS,
    r"\.info\.graph\.(born|plain|\w*loads)$": NEW_FACTS,
    r"\.info\.ops(\.[^\[]*)?\[\d+\]\.odd$": NEW_FACTS,
    r"\.losses\[\d+\]\.data\.(padding|parts|part_\w+|target\.between)$": NEW_FACTS,
    r"\.losses\[\d+\]\.data\.(target|spread|elements|error|correlation)$": L1_FACTS,
    r"\.losses\[\d+\]\.data\.prediction\.(std|space|min|mean|max|dtype|distinct)$": L1_FACTS,
    r"\.sites\..*\.(filled|untouched|distinct_(grad_)?columns)$": NEW_FACTS,
}
# Commits that recorded it rightly: the last one before files were moved and renamed, and the one
# that counts an optimizer around another as one.
BEFORE_MOVES: Final = "5908c8a981970ea703ac776000feac09081e5356"
ONE_OPTIMIZER: Final = "ad02c26"
# Scripts of which 0.1.0 recorded something wrong, and the commit to compare them with as well.
MENDED: Final[dict[str, tuple[str, str]]] = {
    "accelerated.py": ("0.1.0 counted the optimizer and Accelerate's own as two", ONE_OPTIMIZER),
    "hf_trainer.py": ("0.1.0 counted the optimizer and Accelerate's own as two", ONE_OPTIMIZER),
    "crashes.py": ("an event says where an exception interrupted a step", BEFORE_MOVES),
    "lightning_module.py": (
        "0.1.0 counted the optimizer and Lightning's own as two",
        ONE_OPTIMIZER,
    ),
    "lbfgs.py": ("0.1.0 took gradients that are wiped for accumulated ones", ONE_OPTIMIZER),
    "several_optimizers.py": ("0.1.0 took a sparse gradient for none", ONE_OPTIMIZER),
    "other_methods.py": ("0.1.0 did not follow a part that alone is called", ONE_OPTIMIZER),
    "interrupted.py": ("0.1.0 recorded nothing after an interrupted step", BEFORE_MOVES),
    "diverges.py": ("the event of the first NaN lists what its file leaves out", BEFORE_MOVES),
}
# What a budget thins, or what follows from that. It decides by the clock, so that two runs of one
# version do not agree on it. These scalars have points at the steps that were looked at:
THINNED: Final = re.compile(r"grad_norm|update_ratio|batch_fingerprint")
# The last event says how thin it became. Of a site, those calls, gradients and updates are counted
# that were measured, and less is held in memory.
THINNED_FIELDS: Final = re.compile(
    r"\.events\[\d+\]\[3\]\.every$|\.info\.memory\.\w+$"
    r"|\.sites\..*\.(calls(\.\w+)?|steps|with_grad|moved\[\d\])$"
)
# For the processes that a script starts: without the finder of an editable install.
NO_EDITABLE: Final = """\
import sys
sys.meta_path[:] = [each for each in sys.meta_path if "_editable_" not in type(each).__module__]
"""
# Windows that a writer was too slow for are merged with the next: that run is made again.
LAYOUT: Final = re.compile(r"\.series\..*\.windows\.\d+-\d+$")
TRIES: Final = 4
SHOWN: Final = 12

ONLY_HERE: Final = "only here"
ONLY_IN_BASE: Final = "only in the base"

Difference = tuple[str, str]
"""The path of a field, and what is there in the base and here."""


def main() -> int:
    """Runs what was asked for; the exit code."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("base", help="the revision to compare with, such as v0.1.0")
    parser.add_argument("scripts", nargs="*", help="of tests/scripts; else all of them")
    parser.add_argument("--budget", default="none", help="as `nethook run --budget` takes it")
    parser.add_argument("--here", metavar="REVISION", help="a revision in place of this folder")
    options = parser.parse_args()
    commit = commit_of(options.base)
    here = sources_of(commit_of(options.here)) if options.here else ROOT / "src"
    counts: Counter[str] = Counter()
    for command in commands(options.scripts):
        differences = differences_of(command, sources_of(commit), here, options.budget)
        mended = MENDED.get(command.split()[0]) if commit == RELEASED["v0.1.0"] else None
        word = result_of(differences)
        if word == "DIFFERS" and mended is not None and not options.here:
            why, later = mended
            print(f"mended   {command}: {why}; against {later[:7]}:")
            counts["mended"] += 1
            before = sources_of(commit_of(later))
            differences = differences_of(command, before, here, options.budget)
            word = result_of(differences)
        counts[word] += 1
        print(f"{word:8} {command}", flush=True)
        show(differences)
    print("\n" + ", ".join(f"{number} {word}" for word, number in sorted(counts.items())))
    return 1 if counts["DIFFERS"] else 0


def differences_of(command: str, base: Path, here: Path, budget: str) -> list[Difference]:
    """Runs a script with both versions; what differs, as far as it can be the same at all."""
    differences: list[Difference] = []
    for _ in range(TRIES):
        of_base, of_here = (recorded(command, sources, budget) for sources in (base, here))
        if budget != "none":
            keep_what_both_measured(of_base, of_here)
        keep_common_spans(of_base, of_here)
        differences = list(compared(of_base, of_here))
        if not of_base and not of_here:
            differences.append(("run", "neither version has recorded one"))
        if budget != "none":
            differences = [pair for pair in differences if not THINNED_FIELDS.search(pair[0])]
        if not any(LAYOUT.search(path) for path, _ in differences):
            break
    return differences


def reason_of(difference: Difference) -> str | None:
    """Why a field was changed or added on purpose; None where it was not."""
    path, text = difference
    if text == ONLY_IN_BASE and re.search(r"\.info\.", path):
        return None  # what a run says of itself is not lost on purpose
    known = CHANGED | ADDED if text == ONLY_HERE else CHANGED
    return next((why for pattern, why in known.items() if re.search(pattern, path)), None)


def result_of(differences: list[Difference]) -> str:
    """One word on a script: equal, changed (on purpose), DIFFERS."""
    if not differences:
        return "equal"
    return "changed" if all(map(reason_of, differences)) else "DIFFERS"


def show(differences: list[Difference]) -> None:
    """Prints what was changed on purpose, by reason, and what differs, field by field."""
    reasons = Counter(map(reason_of, differences))
    unexplained = reasons.pop(None, 0)
    for reason, number in reasons.items():
        print(f"         on purpose ({number}): {reason}")
    lines = [": ".join(difference) for difference in differences if not reason_of(difference)]
    for line in lines[:SHOWN]:
        print(f"         {line}")
    if unexplained > SHOWN:
        print(f"         and {unexplained - SHOWN} more")
    sys.stdout.flush()


def keep_common_spans(base: dict[str, Any], here: dict[str, Any]) -> None:
    """Takes out the spans of histograms and units that only one of two runs has.

    In loops of short steps their length is a tenth of a second, so it differs from run to run.
    """
    for name in {*base} & {*here}:
        one, other = base[name]["series"], here[name]["series"]
        for series in {*one} & {*other}:
            for field in ("histograms", "active"):
                both = one[series][field], other[series][field]
                one[series][field], other[series][field] = in_both(*both)


def keep_what_both_measured(base: dict[str, Any], here: dict[str, Any]) -> None:
    """Takes out what a budget thins: what is measured in which step then depends on the clock.

    Losses, learning rates, sites, events and findings stay whole. Of series, the windows stay
    that both have and in which both measured every step; of the points in `THINNED`, the steps that
    both have.
    """
    for name in {*base} & {*here}:
        one, other = base[name], here[name]
        for series in {*one["series"], *other["series"]}:
            sides = one["series"].pop(series, {}), other["series"].pop(series, {})
            windows = [whole_windows(side.get("windows", {})) for side in sides]
            for run, kept in zip((one, other), in_both(*windows), strict=True):
                run["series"][series] = {"windows": kept, "histograms": {}, "active": {}}
        for scalar in filter(THINNED.match, {*one["scalars"], *other["scalars"]}):
            sides = one["scalars"].pop(scalar, {}), other["scalars"].pop(scalar, {})
            for run, kept in zip((one, other), in_both(*sides), strict=True):
                run["scalars"][scalar] = kept
        for run in (one, other):
            run["events"] = [event for event in run["events"] if event[1] != "thinned"]


def whole_windows(windows: Mapping[str, Any]) -> dict[str, Any]:
    """Those in which every step was measured."""
    return {span: row for span, row in windows.items() if row["seen"] == row["steps"]}


def in_both(one: Mapping[Any, Any], other: Mapping[Any, Any]) -> tuple[Any, Any]:
    """Two mappings without the keys that only one of them has."""
    common = {*one} & {*other}
    return {key: one[key] for key in common}, {key: other[key] for key in common}


def commands(chosen: list[str]) -> list[str]:
    """The scripts, with their arguments, as the tests run them."""
    from tests.running.scripts import CASES

    listed = [case.command for case in CASES]
    return [command for command in listed if not chosen or command.split()[0] in chosen]


def commit_of(revision: str, folder: Path = ROOT, released: Mapping[str, str] = RELEASED) -> str:
    """The full hash of a revision; of a release also where its tag is missing."""
    for name in (revision, released.get(revision, revision)):
        ask = ["git", "rev-parse", "--verify", "--quiet", f"{name}^{{commit}}"]
        answer = subprocess.run(ask, cwd=folder, capture_output=True, text=True, check=False)
        if answer.returncode == 0:
            return answer.stdout.strip()
    sys.exit(f"`base` must be a revision that git knows here; got {revision!r}. Fetch it first.")


def sources_of(commit: str) -> Path:
    """The sources of a commit with their native kernel, unpacked and built once."""
    folder = KEPT / commit[:12]
    done = folder / ".built"
    if not done.exists():
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        packed = subprocess.check_output(["git", "archive", commit], cwd=ROOT)
        with tarfile.open(fileobj=io.BytesIO(packed)) as archive:
            archive.extractall(folder, filter="data")
        (binding,) = (folder / "src").rglob("binding.cpp")
        build = [
            *("cmake", "-S", str(folder), "-B", str(folder / "build")),
            *(f"-DPython_EXECUTABLE={sys.executable}", f"-DNETHOOK_OUTPUT={binding.parent}"),
        ]
        subprocess.run(build, check=True, stdout=subprocess.DEVNULL)
        subprocess.run(
            ["cmake", "--build", str(folder / "build")], check=True, stdout=subprocess.DEVNULL
        )
        done.touch()
    return folder / "src"


def recorded(command: str, sources: Path, budget: str) -> dict[str, Any]:
    """Runs a script under the nethook in `sources`; every run that it made, as plain data."""
    folder = Path(tempfile.gettempdir()) / "nethook-golden"  # the same for both: runs hold paths
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(ROOT / "tests" / "scripts", folder / "scripts")
    words = command.split()
    (folder / "sitecustomize.py").write_text(NO_EDITABLE)
    libraries = {sysconfig.get_path("purelib"), sysconfig.get_path("platlib")}
    environment = {
        **os.environ,
        # An editable install finds its own sources before any path: hence -S. The processes that
        # a script starts have no -S.
        "PYTHONPATH": os.pathsep.join([str(folder), str(sources), *libraries]),
        "OMP_NUM_THREADS": "1",
        "PYTHONHASHSEED": "0",
    }
    run = [sys.executable, "-S", "-m", "nethook", "run", "--quiet", "--budget", budget]
    subprocess.run(
        [*run, "--to", str(folder / "run.db"), *words],
        cwd=folder / "scripts",
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        check=False,
        timeout=600,
    )
    return {
        path.name: contents(path)
        for path in sorted(folder.glob("run*.db"))
        if not re.search(r"\.rank\d+\.db$", path.name)
    }


def contents(path: Path) -> dict[str, Any]:
    """All of a run, as plain data."""
    import nethook

    with nethook.open_run(path) as run:
        series: dict[str, Any] = {}
        for info in run.catalogue:
            key = info.address, info.quantity
            for phase in ("train", "eval", "aux"):
                one = run.series(*key, phase)
                if not len(one):
                    continue
                histograms, units = run.histograms(*key, phase), run.units(*key, phase)
                spans = zip(one.first_step, one.last_step, strict=True)
                numbers = zip(one.steps, one.seen, one.rows, strict=True)
                series[f"{info.address} {info.quantity} {phase}"] = {
                    "windows": {
                        f"{first}-{last}": {
                            "steps": int(steps),
                            "seen": int(seen),
                            "row": row.tolist(),
                        }
                        for (first, last), (steps, seen, row) in zip(spans, numbers, strict=True)
                    },
                    "histograms": spans_of(histograms, histograms.counts, histograms.counts.any(1)),
                    "active": spans_of(units, units.active, units.measured),
                }
        return {
            "info": run.info,
            "sites": {site.address: site.info for site in run.sites},
            "series": series,
            "scalars": {
                name: points_of(scalar.step.tolist(), scalar.value.tolist())
                for name, scalar in run.scalars.items()
            },
            "snapshots": {
                address: {kept.step: kept.values.tolist() for kept in several}
                for address, several in run.snapshots.items()
            },
            "losses": [vars_of(loss) for loss in run.losses],
            "events": [[event.step, event.kind, event.address, event.data] for event in run.events],
            "findings": [dict(finding) for finding in run.findings],
        }


def spans_of(spans: Any, rows: Any, filled: Any) -> dict[str, list[float]]:
    """The rows of spans in which something was measured, by their steps."""
    steps = zip(spans.first_step, spans.last_step, rows, filled, strict=True)
    return {f"{first}-{last}": row.tolist() for first, last, row, is_filled in steps if is_filled}


def points_of(steps: list[int], values: list[float]) -> dict[int, list[float]]:
    """The values of a scalar by step, of which some have several."""
    points: dict[int, list[float]] = {}
    for step, value in zip(steps, values, strict=True):
        points.setdefault(step, []).append(value)
    return points


def vars_of(record: object) -> dict[str, Any]:
    """The fields of a record."""
    import dataclasses

    assert dataclasses.is_dataclass(record)
    assert not isinstance(record, type)
    return dataclasses.asdict(record)


def compared(base: Any, here: Any, path: str = "run") -> Iterator[Difference]:
    """Every field in which two pieces of plain data differ, times apart."""
    if TIMES.search(path):
        return
    if isinstance(base, Mapping) and isinstance(here, Mapping):
        for name in sorted({*base, *here}, key=str):
            where = f"{path}.{name}"
            if name in base and name in here:
                yield from compared(base[name], here[name], where)
            elif not TIMES.search(where):
                yield where, ONLY_HERE if name in here else ONLY_IN_BASE
    elif isinstance(base, list | tuple) and isinstance(here, list | tuple):
        if len(base) != len(here):
            yield path, f"{len(base)} entries, and {len(here)} here"
        else:
            for index, (one, other) in enumerate(zip(base, here, strict=True)):
                yield from compared(one, other, f"{path}[{index}]")
    elif isinstance(base, float) and isinstance(here, float):
        if base != here and not (math.isnan(base) and math.isnan(here)):
            yield path, f"{base!r}, and {here!r} here"
    elif base != here:
        yield path, f"{base!r:.60}, and {here!r:.60} here"


if __name__ == "__main__":
    sys.exit(main())
