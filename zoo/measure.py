"""Runs the programs of the zoo under `nethook run` and measures what the doctor says of them.

    python zoo/measure.py [--seeds 5] [--jitter] [--half first|second] [--only NAME] [--show]

Every run is kept in `build/zoo`, so a measurement that was broken off goes on where it was; `--anew`
forgets them. `--again` makes the diagnosis anew from the run files that are there, without training.

It ends with code 0 when the figures of all runs together reach `TARGETS`, with 1 when they do not
or a program broke, and with 2 when the call is wrong.
"""

from __future__ import annotations

import argparse
import ast
import concurrent.futures
import json
import os
import statistics
import subprocess
import sys
import threading
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
PROGRAMS = ROOT / "zoo" / "programs"
RUNS = ROOT / "build" / "zoo"
TIMEOUT = 180
PAGE = ROOT / "docs" / "doctor.md"
BEGIN, END = "<!-- figures: written by zoo/measure.py --page -->", "<!-- end of figures -->"
TARGETS = {"recall": 0.95, "first cause": 0.9, "site": 0.9, "false alarms": 0.02}
SPARE = 1
"""One run may miss a target that its number is too small for: one false alarm among thirty is 3 %."""


@dataclass(frozen=True)
class Program:
    """A program, and what is expected of its diagnosis."""

    name: str
    expect: str
    equal: tuple[str, ...]
    site: str
    onset: tuple[int, int] | None
    half: str
    net: str

    @property
    def healthy(self) -> bool:
        """Whether nothing is to be found."""
        return self.expect == "nothing"

    @property
    def codes(self) -> set[str]:
        """What describes the run rightly."""
        return {self.expect, *self.equal}


@dataclass(frozen=True)
class Job:
    """One run of a program."""

    program: Program
    seed: int
    jitter: int
    folder: Path = RUNS

    @property
    def path(self) -> Path:
        """Its run file."""
        return self.folder / f"{self.program.name}-{self.seed}-{self.jitter}.db"


def programs() -> list[Program]:
    """Every program of the zoo, from what its docstring declares."""
    found = []
    for path in sorted(PROGRAMS.glob("*.py")):
        if path.stem == "common":
            continue
        text = ast.get_docstring(ast.parse(path.read_text())) or ""
        said = dict(line.split(": ", 1) for line in text.splitlines()[1:] if ": " in line)
        first, _, last = said.get("onset", "").partition("-")
        found.append(
            Program(
                path.stem,
                said["expect"].strip(),
                tuple(each.strip() for each in said.get("or", "").split(",") if each.strip()),
                said.get("site", "").strip(),
                (int(first), int(last or first)) if first else None,
                said["half"].strip(),
                said.get("net", path.stem.partition("_")[0]).strip(),
            )
        )
    return found


class Workers:
    """Processes that wait with torch imported (`forked.py`), one for each thread that asks.

    Arguments:
        imports: modules that are imported besides torch.
    """

    def __init__(self, imports: Sequence[str] = ()) -> None:
        self._imports = imports
        self._local = threading.local()
        self._all: list[subprocess.Popen[str]] = []

    def run(
        self, arguments: list[str], log: Path, *, plain: bool = False
    ) -> tuple[int, str]:
        """The exit code of `nethook run` with these arguments, and what it printed.

        `plain` runs `python` with them instead. Both run in the folder of the log.
        """
        worker = getattr(self._local, "worker", None)
        if worker is None:
            worker = self._local.worker = subprocess.Popen(
                [sys.executable, str(ROOT / "zoo" / "forked.py"), *self._imports],
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                env={**os.environ, "OMP_NUM_THREADS": "1"},
            )  # fmt: skip
            self._all.append(worker)
        job = {
            "arguments": arguments,
            "log": str(log),
            "folder": str(log.parent),
            "timeout": TIMEOUT,
            "plain": plain,
        }
        worker.stdin.write(json.dumps(job) + "\n")
        worker.stdin.flush()
        code = int(worker.stdout.readline() or -1)
        return code, log.read_text(errors="replace") if log.exists() else ""

    def close(self) -> None:
        """Ends them."""
        for worker in self._all:
            worker.communicate()


def run(job: Job, workers: Workers, *, again: bool) -> dict[str, Any]:
    """Trains, diagnoses, and keeps what was found."""
    kept = job.path.with_suffix(".json")
    if kept.exists() and not again:
        return dict(json.loads(kept.read_text()))
    if not job.path.exists():
        for old in job.folder.glob(f"{job.path.stem}.*"):
            old.unlink()
        code, said = workers.run(
            ["--to", str(job.path), "--quiet", str(PROGRAMS / f"{job.program.name}.py"),
             "--seed", str(job.seed), "--jitter", str(job.jitter)],
            job.path.with_suffix(".log"),
        )  # fmt: skip
        if code or not job.path.exists():
            return {"error": f"exit code {code}: {said[-2000:]}", "findings": []}
    import nethook

    try:
        findings = [each.to_dict() for each in nethook.diagnose(job.path)]
    except Exception as error:  # a measurement of two hundred runs goes on
        return {"error": repr(error), "findings": []}
    result: dict[str, Any] = {"findings": findings}
    if not job.program.healthy and (job.seed, job.jitter) == (0, 0):
        result["steps"] = detection(job.path, job.program)
    kept.write_text(json.dumps(result))
    return result


def detection(path: Path, program: Program) -> int | None:
    """The steps after which the doctor names the fault: 8, 16, 32 and so on, or all of them."""
    from nethook import open_run
    from nethook.doctor.diagnose import examine

    with open_run(path) as run:
        steps = int((run.info.get("totals") or {}).get("steps") or 0)
        for known in (2**power for power in range(3, 20)):
            found = examine(run, until=min(known, steps) - 1)[0]
            told = all_of(each.to_dict() for each in found)
            if any(each["code"] in program.codes for each in told):
                return min(known, steps)
            if known >= steps:
                break
    return None


def all_of(findings: Iterable[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """Findings, and the consequences below them."""
    for each in findings:
        yield each
        yield from all_of(each["consequences"])


@dataclass
class Score:
    """What the doctor said of the runs of some programs."""

    runs: int = 0
    found: int = 0
    first: int = 0
    sites: int = 0
    right_sites: int = 0
    onsets: int = 0
    right_onsets: int = 0
    healthy: int = 0
    alarms: int = 0
    steps: list[int] = field(default_factory=list)

    def add(
        self, program: Program, findings: list[dict[str, Any]], steps: int | None = None
    ) -> None:
        """One more run, and after how many steps its fault was found."""
        if steps is not None:
            self.steps.append(steps)
        if program.healthy:
            self.healthy += 1
            self.alarms += any(each["severity"] != "info" for each in findings)
            return
        self.runs += 1
        named = [each for each in all_of(findings) if each["code"] in program.codes]
        self.found += bool(named)
        self.first += bool(findings) and findings[0]["code"] in program.codes
        if program.site:
            self.sites += 1
            self.right_sites += any(
                site.startswith(program.site) for each in named for site in each["sites"]
            )
        if program.onset:
            self.onsets += 1
            low, high = program.onset
            self.right_onsets += any(low <= each["first_step"] <= high for each in named)

    def missed(self) -> list[str]:
        """The targets that these runs do not reach."""
        reached = {
            "recall": (self.found, self.runs),
            "first cause": (self.first, self.runs),
            "site": (self.right_sites, self.sites),
        }
        missed = [
            name for name, (part, whole) in reached.items()
            if part + SPARE < TARGETS[name] * whole
        ]  # fmt: skip
        if self.alarms - SPARE > TARGETS["false alarms"] * self.healthy:
            missed.append("false alarms")
        return missed

    def shown(self) -> str:
        """In one line."""
        return (
            f"recall {_share(self.found, self.runs)}, first cause {_share(self.first, self.runs)}, "
            f"site {_share(self.right_sites, self.sites)}, "
            f"onset {_share(self.right_onsets, self.onsets)}, "
            f"false alarms {_share(self.alarms, self.healthy)}"
            + (f", found after {statistics.median(self.steps):.0f} steps" if self.steps else "")
        )


def _share(part: int, whole: int) -> str:
    return f"{part / whole:.1%} ({part}/{whole})" if whole else "–"


def main() -> int:
    """Prints the tables."""
    parser = argparse.ArgumentParser(description="Measures the doctor on the zoo.")
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument(
        "--jitter", type=int, nargs="?", const=1000, default=0,
        help="jittered runs as well, of so many seeds (of all)",
    )  # fmt: skip
    parser.add_argument(
        "--quick", action="store_true", help="one program a code, some healthy ones"
    )
    parser.add_argument("--half", choices=["first", "second", "fresh"])
    parser.add_argument("--only", action="append", default=[], help="a program, or a code")
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--runs", type=Path, default=RUNS, help="where runs are kept")
    parser.add_argument("--anew", action="store_true", help="forget earlier runs")
    parser.add_argument("--again", action="store_true", help="diagnose the kept runs anew")
    parser.add_argument("--page", action="store_true", help="put the figures into docs/doctor.md")
    parser.add_argument("--show", action="store_true", help="what was found in each run")
    options = parser.parse_args()
    folder = options.runs.resolve()
    folder.mkdir(parents=True, exist_ok=True)
    if options.anew:
        for old in folder.glob("*.*"):
            old.unlink()
    chosen = [
        each
        for each in programs()
        if options.half in (None, each.half)
        and (not options.only or each.name in options.only or each.expect in options.only)
    ]
    if options.quick:
        chosen = _quick(chosen)
    jobs = [
        Job(program, seed, jitter, folder)
        for program in chosen
        for seed in range(options.seeds)
        for jitter in ([0, 1] if seed < options.jitter else [0])
    ]
    scores: dict[str, Score] = defaultdict(Score)
    by_code: dict[str, Score] = defaultdict(Score)
    broken = []
    workers = Workers()
    with concurrent.futures.ThreadPoolExecutor(options.workers) as pool:
        results = pool.map(lambda job: run(job, workers, again=options.again), jobs)
        for job, result in zip(jobs, results, strict=True):
            findings = result["findings"]
            if "error" in result:
                broken.append((job, result["error"]))
            way = "jittered" if job.jitter else "plain"
            steps = result.get("steps")
            scores[f"{job.program.half}, {way}"].add(job.program, findings, steps)
            by_code[job.program.expect].add(job.program, findings, steps)
            if options.show or _is_wrong(job.program, findings):
                _show(job, findings)
    workers.close()
    print(f"\n{'code':32}{'recall':>16}{'first cause':>16}{'site':>16}{'steps':>8}")
    for code, score in sorted(by_code.items()):
        if code != "nothing":
            shares = (
                (score.found, score.runs), (score.first, score.runs),
                (score.right_sites, score.sites),
            )  # fmt: skip
            steps = f"{statistics.median(score.steps):.0f}" if score.steps else "–"
            print(f"{code:32}" + "".join(f"{_share(*each):>16}" for each in shares) + f"{steps:>8}")
    print()
    for name, score in sorted(scores.items()):
        print(f"{name}: {score.shown()}")
    for job, error in broken:
        print(f"\nBROKEN {job.program.name} seed {job.seed} jitter {job.jitter}: {error}")
    if options.page:
        write_page(scores, by_code)
    missed = {name: score.missed() for name, score in scores.items() if score.missed()}
    for name, targets in missed.items():
        print(f"\nMISSED {name}: {', '.join(targets)}")
    return 1 if broken or missed else 0


def write_page(scores: dict[str, Score], by_code: dict[str, Score]) -> None:
    """Puts the figures into docs/doctor.md."""
    words = " ".join(each for each in sys.argv[1:] if each != "--page")
    parts = [
        f"| {name} | {score.runs + score.healthy} | {_share(score.found, score.runs)} | "
        f"{_share(score.first, score.runs)} | {_share(score.right_sites, score.sites)} | "
        f"{_share(score.alarms, score.healthy)} |"
        for name, score in sorted(scores.items())
    ]
    codes = [
        f"| `{code}` | {_share(score.found, score.runs)} | {_share(score.first, score.runs)} | "
        f"{_share(score.right_sites, score.sites)} | "
        f"{f'{statistics.median(score.steps):.0f}' if score.steps else '–'} |"
        for code, score in sorted(by_code.items())
        if code != "nothing"
    ]
    lines = [
        BEGIN, "", f"`python zoo/measure.py {words}`:", "",
        "| programs | runs | recall | first cause | site | false alarms |",
        "| --- | --- | --- | --- | --- | --- |", *parts, "",
        "| code | recall | first cause | site | named after steps |",
        "| --- | --- | --- | --- | --- |", *codes, "", END,
    ]  # fmt: skip
    text = PAGE.read_text(encoding="utf-8")
    before, _, rest = text.partition(BEGIN)
    PAGE.write_text(before + "\n".join(lines) + rest.partition(END)[2], encoding="utf-8")


def _quick(chosen: list[Program]) -> list[Program]:
    """One program a code, and every second healthy one: what is run before a change is taken."""
    ill = {each.expect: each for each in reversed(chosen) if not each.healthy}
    return [*ill.values(), *[each for each in chosen if each.healthy][::2]]


def _is_wrong(program: Program, findings: list[dict[str, Any]]) -> bool:
    if program.healthy:
        return any(each["severity"] != "info" for each in findings)
    return not findings or findings[0]["code"] not in program.codes


def _show(job: Job, findings: list[dict[str, Any]]) -> None:
    print(
        f"\n{job.program.name} (seed {job.seed}, jitter {job.jitter}): expected {job.program.expect}"
    )
    for each in findings:
        below = ", ".join(one["code"] for one in each["consequences"])
        print(
            f"  {each['code']} ({each['severity']}) {each['sites'][:3]} @{each['first_step']}: {each['message']}"
        )
        if below:
            print(f"    leads to {below}")


if __name__ == "__main__":
    sys.exit(main())
