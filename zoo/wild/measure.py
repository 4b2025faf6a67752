"""Runs the wild programs under `nethook run` and measures what the doctor says of them.

    python zoo/wild/measure.py known                    the programs that rules may be written for
    python zoo/wild/measure.py unseen                   those that nobody looks at before a look
    python zoo/wild/measure.py unseen_two               a second exam, written without sight of the rules
    python zoo/wild/measure.py unseen_three             a third
    python zoo/wild/measure.py unseen_four              a fourth
    python zoo/wild/measure.py unseen_five              a fifth
    python zoo/wild/measure.py unseen_six               a sixth
    python zoo/wild/measure.py unseen_seven             a seventh
    python zoo/wild/measure.py known --fixed            the same, each with its fix: all are healthy
    python zoo/wild/measure.py known --only relu_on_the_logits --show
    python zoo/wild/measure.py known --no-examine       what watching alone finds, in runs of its own
    python zoo/wild/measure.py known --unexamined       the same of the kept runs, as if nothing was examined
    python zoo/wild/measure.py known --share 0.1        what a tenth of the steps tells

A program is wrong in one way that somebody has published, or in none. Its docstring says what is
expected (see zoo/README.md); beside a faulty one lies its fix, as a patch. Five shares are printed:

- right cause: a finding has the expected code, at whatever place;
- first: it is the first one;
- called fine: the verdict was "no problems found";
- false alarms: healthy programs with a finding at `warning` or above;
- not judged: healthy programs of which nothing could be said, which is no alarm.

Runs are kept in `build/wild`; `--anew` forgets them, `--again` diagnoses the kept ones anew.
"""

from __future__ import annotations

import argparse
import ast
import concurrent.futures
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
HERE = ROOT / "zoo" / "wild"
RUNS = ROOT / "build" / "wild"
SETS = (
    "known",
    "unseen",
    "unseen_two",
    "unseen_three",
    "unseen_four",
    "unseen_five",
    "unseen_six",
    "unseen_seven",
)
_EXAM = {"right": 0.80, "first": 0.70, "fine": 0.05, "alarms": 0.03}
GOALS = {
    "known": {"right": 0.95, "first": 0.90, "fine": 0.01, "alarms": 0.01},
    "unseen": _EXAM,
    "unseen_two": _EXAM,
    "unseen_three": _EXAM,
    "unseen_four": _EXAM,
    "unseen_five": _EXAM,
    "unseen_six": _EXAM,
    "unseen_seven": _EXAM,
}

sys.path.insert(0, str(ROOT / "zoo"))
from measure import Workers, all_of  # noqa: E402


@dataclass(frozen=True)
class Program:
    """A wild program, and what is expected of its diagnosis."""

    path: Path
    expect: str
    equal: tuple[str, ...]

    @property
    def healthy(self) -> bool:
        """Whether nothing is to be found."""
        return self.expect == "nothing"

    @property
    def codes(self) -> set[str]:
        """What describes the cause rightly."""
        return {self.expect, *self.equal}


def programs(folder: Path) -> list[Program]:
    """Every program of a set, from what its docstring declares."""
    made = []
    for path in sorted(folder.glob("*.py")):
        text = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""
        said = dict(line.split(": ", 1) for line in text.splitlines()[1:] if ": " in line)
        if "expect" not in said:
            raise SystemExit(f"{path.name} does not say what is expected: `expect: CODE`.")
        equal = tuple(code.strip() for code in said.get("or", "").split(",") if code.strip())
        made.append(Program(path, said["expect"].strip(), equal))
    return made


def fixed(program: Program, folder: Path) -> Program:
    """The program with its fix, as a file of its own; nothing is expected of it."""
    folder.mkdir(parents=True, exist_ok=True)
    copy = folder / program.path.name
    shutil.copy(program.path, copy)
    patch = program.path.with_suffix(".fix")
    subprocess.run(["git", "apply", "-p0", str(patch)], cwd=folder, check=True)
    return Program(copy, "nothing", ())


def result_of(
    program: Program,
    seed: int,
    folder: Path,
    workers: Workers,
    again: bool,
    share: float = 1.0,
    more: Sequence[str] = (),
    unexamined: bool = False,
) -> Any:
    """Trains, diagnoses (what was recorded in a share of the steps), and keeps what was found."""
    whole = share == 1.0 and not unexamined
    path = folder / f"{program.path.stem}-{seed}.db"
    kept = path.with_suffix(".json")
    if kept.exists() and not again and whole:
        return json.loads(kept.read_text())
    if not path.exists():
        for old in (*folder.glob(f"{path.stem}.*"), *folder.glob(f"{path.stem}-[0-9]*.db")):
            old.unlink()
        arguments = ["--to", str(path), "--quiet", *more, str(program.path), "--seed", str(seed)]
        code, said = workers.run(arguments, path.with_suffix(".log"))
        if not path.exists() and code:
            return {"findings": [], "error": f"exit code {code}, no run: {said[-2000:]}"}
        if not path.exists():  # it says that nothing was trained by calling it
            return {"findings": [], "fine": False, "verdict": "no run"}
    import nethook

    from nethook.doctor.diagnose import examine
    from nethook.doctor.verdict import verdict_of

    # A model that is trained after another one has a run of its own, beside the first.
    paths = [path, *sorted(folder.glob(f"{path.stem}-[0-9]*.db"))]
    result: dict[str, Any] = {"findings": [], "fine": False, "verdict": []}
    try:
        for each in paths:
            with nethook.open_run(each) as run:
                steps = max(rank.last_step for rank in run.ranks) + 1
                until = None if share == 1.0 else max(0, int(share * steps) - 1)
                seen = as_if_unexamined(run) if unexamined else run
                findings = [finding.to_dict() for finding in examine(seen, until=until)[0]]
                verdict = verdict_of(seen, findings)
            result["findings"] += findings
            result["fine"] |= verdict.is_fine
            result["verdict"].append(str(verdict))
    except Exception as error:  # a measurement of a hundred runs goes on
        return {"findings": [], "error": repr(error)}
    if whole:
        kept.write_text(json.dumps(result))
    return result


def as_if_unexamined(run: Any) -> Any:
    """A run without what experiments on copies have shown."""
    from nethook.runs.reading.run import Run

    class Unexamined(Run):
        """The facts of a run but those."""

        @property
        def info(self) -> dict[str, Any]:
            hidden = ("examined", "examination")
            return {name: fact for name, fact in super().info.items() if name not in hidden}

    run.__class__ = Unexamined
    return run


def is_serious(findings: Sequence[dict[str, Any]]) -> bool:
    """Whether a finding is at `warning` or above."""
    return any(finding["severity"] != "info" for finding in findings)


@dataclass
class Score:
    """Counts over some runs."""

    ill: int = 0
    right: int = 0
    first: int = 0
    fine: int = 0
    healthy: int = 0
    alarms: int = 0
    unjudged: int = 0

    def add(
        self, program: Program, findings: Sequence[dict[str, Any]], *, judged: bool = True
    ) -> str:
        """One more run; what was wrong about it, or "".

        `judged` is False where the verdict was "too early to tell" or "not judged".
        """
        if program.healthy:
            self.healthy += 1
            alarm = is_serious(findings)
            self.alarms += alarm
            self.unjudged += not judged
            return "false alarm" if alarm else ""
        self.ill += 1
        named = any(finding["code"] in program.codes for finding in all_of(findings))
        serious = [finding for finding in findings if finding["severity"] != "info"]
        first = bool(findings) and findings[0]["code"] in program.codes
        self.right += named
        self.first += first
        self.fine += judged and not serious and not named
        if named:
            return "" if first else "not first"
        return "called fine" if judged and not serious else "missed"

    def table(self) -> str:
        """Five lines."""
        rows = (
            ("right cause", self.right, self.ill), ("right cause first", self.first, self.ill),
            ("called fine though ill", self.fine, self.ill),
            ("false alarms", self.alarms, self.healthy),
            ("healthy, not judged", self.unjudged, self.healthy),
        )  # fmt: skip
        return "\n".join(
            f"  {name:24} {part / whole:6.0%}  ({part} of {whole})" if whole else f"  {name:24}  –"
            for name, part, whole in rows
        )

    def missed(self, goals: dict[str, float]) -> list[str]:
        """The goals that are not reached."""
        ill, healthy = max(1, self.ill), max(1, self.healthy)
        reached = {
            "right": self.right >= goals["right"] * ill or not self.ill,
            "first": self.first >= goals["first"] * ill or not self.ill,
            "fine": self.fine <= goals["fine"] * ill,
            "alarms": self.alarms <= goals["alarms"] * healthy,
        }
        return [name for name, is_reached in reached.items() if not is_reached]


def show(program: Program, seed: int, verdict: str, findings: Sequence[dict[str, Any]]) -> None:
    """What was found in one run."""
    print(f"\n{program.path.stem} (seed {seed}), {verdict or 'right'}: {program.expect} expected")
    for finding in findings:
        below = ", ".join(one["code"] for one in finding["consequences"])
        print(
            f"  {finding['code']} ({finding['severity']}) {finding['sites'][:3]} "
            f"@{finding['first_step']}: {finding['message']}"
            + (f"\n    leads to {below}" if below else "")
        )


def commit_of(folder: Path) -> str:
    """The last commit that has changed the programs of a set."""
    command = ["git", "log", "-1", "--format=%h", "--", str(folder)]
    answer = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    return answer.stdout.strip() or "not committed"


def main() -> int:
    """Prints the table."""
    parser = argparse.ArgumentParser(description="Measures the doctor on wild programs.")
    parser.add_argument("set", choices=SETS)
    parser.add_argument("--fixed", action="store_true", help="each faulty program with its fix")
    parser.add_argument("--only", action="append", default=[], help="a program, or a code")
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--anew", action="store_true", help="forget earlier runs")
    parser.add_argument("--again", action="store_true", help="diagnose the kept runs anew")
    parser.add_argument("--no-examine", action="store_true", help="without examinations")
    parser.add_argument("--unexamined", action="store_true", help="kept runs, no examinations")
    parser.add_argument("--share", type=float, default=1.0, help="of the steps to look at")
    parser.add_argument("--show", action="store_true", help="what was found in each run")
    options = parser.parse_args()
    more = ["--no-examine"] * options.no_examine
    folder = RUNS / (options.set + "-fixed" * options.fixed + "-watched" * options.no_examine)
    if options.anew:
        shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True, exist_ok=True)
    chosen = [
        program
        for program in programs(HERE / options.set)
        if not options.only or program.path.stem in options.only or program.expect in options.only
    ]
    if options.fixed:
        chosen = [fixed(program, folder / "programs") for program in chosen if not program.healthy]
    jobs = [(program, seed) for program in chosen for seed in range(options.seeds)]
    score, broken, workers = Score(), [], Workers()
    with concurrent.futures.ThreadPoolExecutor(options.workers) as pool:
        results = pool.map(
            lambda job: result_of(
                *job, folder, workers, options.again, options.share, more, options.unexamined
            ),
            jobs,
        )
        for (program, seed), result in zip(jobs, results, strict=True):
            if "error" in result:
                broken.append((program, seed, result["error"]))
                continue
            judged = result["fine"] or is_serious(result["findings"])
            verdict = score.add(program, result["findings"], judged=judged)
            if options.show or verdict:
                show(program, seed, verdict, result["findings"])
    workers.close()
    print(
        f"\n{options.set}{', fixed' * options.fixed}, programs of {commit_of(HERE / options.set)}:"
    )
    print(score.table())
    for program, seed, error in broken:
        print(f"\nBROKEN {program.path.stem} seed {seed}: {error}")
    missed = [] if options.only else score.missed(GOALS[options.set])
    if missed:
        print(f"\nBelow the goals: {', '.join(missed)}.")
    return 1 if broken or missed else 0


if __name__ == "__main__":
    sys.exit(main())
