"""Runs the programs of the zoo under `nethook run` and measures what the doctor says of them.

    python zoo/measure.py [--seeds 5] [--jitter] [--half first|second] [--only NAME] [--show]

Every run is kept in `build/zoo`, so a measurement that was broken off goes on where it was; `--anew`
forgets them. `--again` makes the diagnosis anew from the run files that are there, without training.
"""

from __future__ import annotations

import argparse
import ast
import concurrent.futures
import json
import os
import subprocess
import sys
import threading
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
PROGRAMS = ROOT / "zoo" / "programs"
RUNS = ROOT / "build" / "zoo"
TIMEOUT = 180


@dataclass(frozen=True)
class Program:
    """A program, and what is expected of its diagnosis."""

    name: str
    expect: str
    equal: tuple[str, ...]
    site: str
    onset: tuple[int, int] | None
    half: str

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

    @property
    def path(self) -> Path:
        """Its run file."""
        return RUNS / f"{self.program.name}-{self.seed}-{self.jitter}.db"


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
            )
        )
    return found


class Workers:
    """Processes that wait with torch imported (`forked.py`), one for each thread that asks."""

    def __init__(self) -> None:
        self._local = threading.local()
        self._all: list[subprocess.Popen[str]] = []

    def run(self, arguments: list[str], log: Path) -> tuple[int, str]:
        """The exit code of `nethook run` with these arguments, and what it printed."""
        worker = getattr(self._local, "worker", None)
        if worker is None:
            worker = self._local.worker = subprocess.Popen(
                [sys.executable, str(ROOT / "zoo" / "forked.py")],
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                env={**os.environ, "OMP_NUM_THREADS": "1"},
            )  # fmt: skip
            self._all.append(worker)
        job = {"arguments": arguments, "log": str(log), "folder": str(RUNS), "timeout": TIMEOUT}
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
        for old in RUNS.glob(f"{job.path.stem}.*"):
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
    kept.write_text(json.dumps(result))
    return result


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

    def add(self, program: Program, findings: list[dict[str, Any]]) -> None:
        """One more run."""
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

    def shown(self) -> str:
        """In one line."""
        return (
            f"recall {_share(self.found, self.runs)}, first cause {_share(self.first, self.runs)}, "
            f"site {_share(self.right_sites, self.sites)}, "
            f"onset {_share(self.right_onsets, self.onsets)}, "
            f"false alarms {_share(self.alarms, self.healthy)}"
        )


def _share(part: int, whole: int) -> str:
    return f"{part / whole:.1%} ({part}/{whole})" if whole else "–"


def main() -> int:
    """Prints the tables."""
    parser = argparse.ArgumentParser(description="Measures the doctor on the zoo.")
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--jitter", action="store_true", help="jittered runs as well")
    parser.add_argument("--half", choices=["first", "second", "fresh"])
    parser.add_argument("--only", action="append", default=[], help="a program, or a code")
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--anew", action="store_true", help="forget earlier runs")
    parser.add_argument("--again", action="store_true", help="diagnose the kept runs anew")
    parser.add_argument("--show", action="store_true", help="what was found in each run")
    options = parser.parse_args()
    RUNS.mkdir(parents=True, exist_ok=True)
    if options.anew:
        for old in RUNS.glob("*.*"):
            old.unlink()
    chosen = [
        each
        for each in programs()
        if options.half in (None, each.half)
        and (not options.only or each.name in options.only or each.expect in options.only)
    ]
    jobs = [
        Job(program, seed, jitter)
        for program in chosen
        for seed in range(options.seeds)
        for jitter in ([0, 1] if options.jitter else [0])
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
            scores[f"{job.program.half} half, {way}"].add(job.program, findings)
            by_code[job.program.expect].add(job.program, findings)
            if options.show or _is_wrong(job.program, findings):
                _show(job, findings)
    workers.close()
    print()
    for code, score in sorted(by_code.items()):
        if code != "nothing":
            print(
                f"{code:32}{_share(score.found, score.runs):>16}{_share(score.first, score.runs):>16}"
            )
    print()
    for name, score in sorted(scores.items()):
        print(f"{name}: {score.shown()}")
    for job, error in broken:
        print(f"\nBROKEN {job.program.name} seed {job.seed} jitter {job.jitter}: {error}")
    return 1 if broken else 0


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
