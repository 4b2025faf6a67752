"""Runs programs of several trainers under `nethook run`: verdicts, number of runs, and losses.

    TRAINERS/bin/python zoo/trainers/measure.py                   all programs
    TRAINERS/bin/python zoo/trainers/measure.py --only sb3_ppo --show
    TRAINERS/bin/python zoo/trainers/measure.py --again           diagnose the kept runs anew

TRAINERS is an environment with the trainers in it (zoo/README.md says how to make it). What a
program says of itself, and what counts as a false alarm, is as in `zoo/wild`. A program may also
print what its trainer has logged at last, `logged: train 0.12 eval 0.34`; it is compared with the
last values in the run. Runs are kept in `build/trainers`.
"""

from __future__ import annotations

import argparse
import importlib.util
import re
import shutil
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
RUNS = ROOT / "build" / "trainers"

sys.path.insert(0, str(ROOT / "zoo"))
from measure import Workers  # noqa: E402

_spec = importlib.util.spec_from_file_location("wild_measure", ROOT / "zoo/wild/measure.py")
assert _spec is not None
assert _spec.loader is not None
wild = importlib.util.module_from_spec(_spec)
sys.modules["wild_measure"] = wild  # dataclasses look their module up
_spec.loader.exec_module(wild)

CLOSE = 1e-3
"""Relative difference of two losses that count as one: programs print some rounded."""


def logged(log: Path) -> dict[str, float]:
    """The last losses, as the trainer has logged them."""
    found = re.findall(r"^logged: (.*)$", log.read_text(errors="replace"), re.MULTILINE)
    words = found[-1].split() if found else []
    return {phase: float(value) for phase, value in zip(words[::2], words[1::2], strict=True)}


def recorded(path: Path, phase: str) -> list[float]:
    """The last value of each loss in a run."""
    import nethook

    with nethook.open_run(path) as run:
        return [float(curve.shown[-1]) for curve in run.loss_curves(phase).values() if len(curve)]


def differing(said: dict[str, float], paths: list[Path]) -> list[str]:
    """The losses that no run has as the trainer has logged them."""
    words = []
    for phase, value in said.items():
        held = [number for path in paths for number in recorded(path, phase)]
        if not any(abs(number - value) <= CLOSE * abs(value) for number in held):
            shown = ", ".join(f"{number:.5g}" for number in held) or "none"
            words.append(f"{phase} {value:.5g}, recorded {shown}")
    return words


def names_of_losses(paths: list[Path]) -> int:
    """How many names losses have, in all runs."""
    import nethook

    count = 0
    for path in paths:
        with nethook.open_run(path) as run:
            count += len({*run.loss_curves("train"), *run.loss_curves("eval")})
    return count


def main() -> int:
    """Prints a line for each program, and the table."""
    parser = argparse.ArgumentParser(description="Measures verdicts under several trainers.")
    parser.add_argument("--only", action="append", default=[], help="a program, by its beginning")
    parser.add_argument("--anew", action="store_true", help="forget earlier runs")
    parser.add_argument("--again", action="store_true", help="diagnose the kept runs anew")
    parser.add_argument("--show", action="store_true", help="what was found in each run")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    chosen = [
        program
        for program in wild.programs(Path(__file__).parent / "programs")
        if not options.only or any(program.path.stem.startswith(name) for name in options.only)
    ]
    if options.anew:
        for program in chosen if options.only else [None]:
            pattern = f"{program.path.stem}-*" if program is not None else "*"
            for path in RUNS.glob(pattern):
                shutil.rmtree(path) if path.is_dir() else path.unlink()
    RUNS.mkdir(parents=True, exist_ok=True)
    score, broken, workers = wild.Score(), 0, Workers()
    for program in chosen:
        result: dict[str, Any] = wild.result_of(program, options.seed, RUNS, workers, options.again)
        name = f"{program.path.stem}-{options.seed}"
        if "error" in result:
            broken += 1
            print(f"BROKEN {program.path.stem}: {result['error'][-1500:]}")
            continue
        paths = [path for path in (RUNS / f"{name}.db",) if path.exists()]
        paths += sorted(RUNS.glob(f"{name}-[0-9]*.db"))
        judged = result["fine"] or wild.is_serious(result["findings"])
        verdict = score.add(program, result["findings"], judged=judged)
        codes = [f"{one['code']} ({one['severity']})" for one in result["findings"]]
        print(
            f"{program.path.stem:30} {verdict or 'right':12} runs {len(paths)} "
            f"losses {names_of_losses(paths)}  {', '.join(codes) or 'nothing found'}"
        )
        for words in differing(logged(RUNS / f"{name}.log"), paths):
            print(f"{'':30} the trainer logged {words}")
        if options.show:
            wild.show(program, options.seed, verdict, result["findings"])
            print(f"  {result['verdict']}")
    workers.close()
    print(score.table())
    return 1 if broken or score.alarms else 0


if __name__ == "__main__":
    sys.exit(main())
