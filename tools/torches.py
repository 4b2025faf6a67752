"""Runs the tests on one torch after the other, and prints a table.

    python -m tools.torches                        2.8.0, 2.11.0, 2.13.0 and 2.15.0
    python -m tools.torches all                    every minor release from 2.8 to 2.15
    python -m tools.torches 2.8.0 2.15.0           these
    python -m tools.torches 2.8.0 -m short         what is left over is for pytest
    python -m tools.torches --keep 2.8.0           leaves its environment, and what was downloaded

Each is `make test TORCH=...` in an environment of its own, which is deleted afterwards (5 to 8 GB:
the registry's builds bring their CUDA packages), unless it was there before. A torch that fails
does not keep the next from its turn. The table is written to build/torches.md as well, after every
torch. The exit code is 1 where a test failed or could not be run.

No package is needed for this: it runs before there is an environment.
"""

# ruff: noqa: T201  (a program that prints for people)

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, NamedTuple
from xml.etree import ElementTree as ET

from tools.torch_pins import OFTEN, ROOT, SELDOM, is_torch

TABLE: Final = ROOT / "build" / "torches.md"
DOWNLOADS: Final = ROOT / "build" / "uv-cache"
# What `make` hands down to the make that is started here: its own words are not meant for that.
MAKES_OWN: Final = ("MAKEFLAGS", "MFLAGS", "MAKEOVERRIDES", "MAKELEVEL", "ARGS", "TORCH")

# How a test can end that did not pass, in pytest's file.
ENDS: Final = frozenset({"failure", "error", "skipped"})


class Asked(NamedTuple):
    """What a command line asks for."""

    torches: tuple[str, ...]
    keep: bool
    pytest: tuple[str, ...]


def asked(words: Sequence[str]) -> Asked:
    """Reads the command line: torches, `all`, `--keep`; everything else goes to pytest."""
    named = tuple(word for word in words if is_torch(word))
    if "all" in words:
        every = sorted((*OFTEN, *SELDOM), key=lambda torch: [*map(int, torch.split("."))])
        named = tuple(dict.fromkeys((*every, *named)))
    rest = (word for word in words if word not in {*named, "all", "--keep"})
    return Asked(named or OFTEN, "--keep" in words, tuple(rest))


@dataclass(frozen=True)
class Result:
    """What the tests said on one torch.

    Attributes:
        seconds: from the first test to the last.
        failing: the tests that failed or had an error, as pytest would take their names.
        broken: why there are no numbers, or not all of them; "" where the tests ran to the end.
    """

    torch: str
    passed: int = 0
    failed: int = 0
    errors: int = 0
    skipped: int = 0
    seconds: float = 0.0
    failing: tuple[str, ...] = ()
    broken: str = ""

    @property
    def good(self) -> bool:
        """Whether every test ran, and none failed."""
        return not (self.failing or self.failed or self.errors or self.broken)


def read(torch: str, file: Path, code: int) -> Result:
    """The result from pytest's file and the exit code of the command that wrote it."""
    if not file.exists():
        return Result(torch, broken="not run: see what was printed above")
    suite = next(ET.parse(file).getroot().iter("testsuite"))
    cases = list(suite.iter("testcase"))
    failing = [
        _name(case) for case in cases if {child.tag for child in case} & {"failure", "error"}
    ]
    # Not what is left of the sum: a test can fail, and its fixture have an error as well.
    good = [case for case in cases if not {child.tag for child in case} & ENDS]
    failed, errors, skipped = (
        int(suite.get(name, 0)) for name in ("failures", "errors", "skipped")
    )
    broken = ""
    if not cases:
        broken = "there were no such tests"
    elif code and not failing:
        broken = "broken off: see what was printed above"
    return Result(
        torch,
        len(good),
        failed,
        errors,
        skipped,
        float(suite.get("time", 0.0)),
        tuple(dict.fromkeys(failing)),
        broken,
    )


def _name(case: ET.Element) -> str:
    """`tests/hooks/test_order.py::test_it` of a test; the module, where it was not collected."""
    module, name = case.get("classname", ""), case.get("name", "")
    if not module:
        return f"{name.replace('.', '/')}.py"
    # The classname is the module, and then the classes of a test in one.
    file, classes = module.split("."), list[str]()
    while len(file) > 1 and not ROOT.joinpath(*file).with_suffix(".py").exists():
        classes.insert(0, file.pop())
    return "::".join(["/".join(file) + ".py", *classes, name])


def table(results: Sequence[Result]) -> str:
    """A row a torch, and the tests that failed below; Markdown, for the pages that show it."""
    head = ("torch", "passed", "failed", "errors", "skipped", "time")
    rows = [
        (
            result.torch,
            *(
                str(count)
                for count in (result.passed, result.failed, result.errors, result.skipped)
            ),
            f"{result.seconds // 60:.0f}:{result.seconds % 60:02.0f}",
        )
        for result in results
    ]
    wide = [max(map(len, column)) for column in zip(head, *rows, strict=True)]
    lines = [_row(head, wide), "|" + "|".join(f" {'-' * (width - 1)}: " for width in wide) + "|"]
    lines += [_row(row, wide) for row in rows]
    for result in results:
        if not result.good:
            said = [result.broken] if result.broken else []
            lines += [
                "",
                f"torch {result.torch}:",
                "",
                *(f"- {it}" for it in [*said, *result.failing]),
            ]
    return "\n".join(lines) + "\n"


def _row(fields: Sequence[str], wide: Sequence[int]) -> str:
    shown = (field.rjust(width) for field, width in zip(fields, wide, strict=True))
    return "| " + " | ".join(shown) + " |"


def run(torch: str, arguments: Sequence[str]) -> Result:
    """`make test` with this torch; what it prints is printed."""
    file = ROOT / "build" / f"torch-{torch}.xml"
    file.unlink(missing_ok=True)
    words = shlex.join([*arguments, f"--junit-xml={file.relative_to(ROOT)}"])
    done = subprocess.run(
        [
            os.environ.get("MAKE", "make"),
            "test",
            f"TORCH={torch}",
            f"PYTHON={sys.executable}",
            f"ARGS={words.replace('$', '$$')}",
        ],
        cwd=ROOT,
        env={name: value for name, value in os.environ.items() if name not in MAKES_OWN},
        check=False,
    )
    return read(torch, file, done.returncode)


def environment(torch: str) -> Path:
    """Where `make` puts the environment of this torch."""
    return ROOT / f".venv-torch-{torch}"


def main(words: Sequence[str]) -> int:
    """Runs what was asked for; the exit code."""
    torches, keep, arguments = asked(words)
    results: list[Result] = []
    for torch in torches:
        print(f"\n-- torch {torch}", flush=True)
        stays = keep or environment(torch).exists()
        began = time.monotonic()
        try:
            results.append(run(torch, arguments))
        finally:
            # Interrupted, too: nobody looks for gigabytes that a run left behind.
            if not stays:
                shutil.rmtree(environment(torch), ignore_errors=True)
            if not keep:
                shutil.rmtree(DOWNLOADS, ignore_errors=True)
        print(f"-- torch {torch}: {(time.monotonic() - began) / 60:.0f} minutes in all", flush=True)
        TABLE.parent.mkdir(exist_ok=True)
        TABLE.write_text(table(results), encoding="utf-8")
    print(f"\n{table(results)}\nThe table is in {TABLE.relative_to(ROOT)}, too.")
    return 0 if all(result.good for result in results) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
