"""Compares what two versions of nethook record of the same training scripts, field by field.

    python -m tools.golden v0.1.0                     all scripts of tests/scripts
    python -m tools.golden v0.1.0 plain.py gan.py     these
    python -m tools.golden v0.1.0 --budget 3%         with a budget: what is never thinned

Each script runs under `nethook run`, once with the sources of a revision and once with those of
this folder, in the same environment. Both run files are read by this folder's nethook and compared:
what ran, sites, every number of every series, scalars, losses, findings, events. Times are left
out, and what `CHANGED` lists, with the reason. The exit code is 1 where anything else differs.
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
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

ROOT: Final = Path(__file__).resolve().parent.parent
KEPT: Final = ROOT / "build" / "golden"

# Numbers that two runs of one version do not agree on either.
TIMES: Final = re.compile(
    r"(^|\.)(started|ended|finished|time|seconds|beat|pid|host\w*|python|platform|command|path|git|versions?"
    r"|sessions|cost|\w*overhead|packages|devices|nethook|torch|script|cwd|argv|revision|dirty|folder)"
    r"(\.|$)|_seconds|seconds_|watch_share|anchor"
)
# What later versions record otherwise on purpose: a pattern of paths, and the reason.
CHANGED: Final[dict[str, str]] = {
    r"\.findings\[\d+\]\.(message|fix)$": "findings are worded in plain English since 0.1",
}
# Scripts of which 0.1.0 recorded something wrong. They are equal against 5908c8a, from before the
# files were moved.
MENDED: Final[dict[str, str]] = {
    "accelerated.py": "0.1.0 counted the first step twice, and step 1 was empty",
    "hf_trainer.py": "0.1.0 counted the first step twice, and step 1 was empty",
    "crashes.py": "an event says where an exception interrupted a step",
    "interrupted.py": "0.1.0 recorded nothing after an interrupted step",
    "diverges.py": "the event of the first NaN lists what was left out of its file",
}
# Windows that a writer was too slow for are merged with the next: that run is made again.
LAYOUT: Final = re.compile(r"\.series\..*\.(steps|seen|rows)(\[\d+\])*: ")
TRIES: Final = 4


def main() -> int:
    """Runs what was asked for; the exit code."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("base", help="the revision to compare with, such as v0.1.0")
    parser.add_argument("scripts", nargs="*", help="of tests/scripts; else all of them")
    parser.add_argument("--budget", default="none", help="as `nethook run --budget` takes it")
    options = parser.parse_args()
    versions = (sources_of(options.base), ROOT / "src")
    failed = 0
    for command in commands(options.scripts):
        for _ in range(TRIES):
            base, here = (recorded(command, src, options.budget) for src in versions)
            differences = list(compared(base, here))
            if not any(LAYOUT.search(difference) for difference in differences):
                break
        if options.budget != "none":  # what is thinned differs from run to run
            differences = [line for line in differences if ".series." not in line]
        mended = MENDED.get(command.split()[0]) if options.base == "v0.1.0" else None
        if differences and mended is not None:
            print(f"mended   {command}: {mended}", flush=True)
            continue
        failed += bool(differences)
        print(f"{'DIFFERS' if differences else 'equal':8} {command}", flush=True)
        for difference in differences[:12]:
            print(f"         {difference}")
        if len(differences) > 12:
            print(f"         and {len(differences) - 12} more")
    print(f"\n{failed} differ" if failed else "\nall equal")
    return 1 if failed else 0


def commands(chosen: list[str]) -> list[str]:
    """The scripts, with their arguments, as the tests run them."""
    from tests.running.scripts import CASES

    listed = [case.command for case in CASES]
    return [command for command in listed if not chosen or command.split()[0] in chosen]


def sources_of(revision: str) -> Path:
    """The sources of a revision with their native kernel, unpacked and built once."""
    commit = subprocess.check_output(["git", "rev-parse", f"{revision}^{{commit}}"], cwd=ROOT)
    folder = KEPT / commit.decode().strip()[:12]
    done = folder / ".built"
    if not done.exists():
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        packed = subprocess.check_output(["git", "archive", revision], cwd=ROOT)
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
    libraries = {sysconfig.get_path("purelib"), sysconfig.get_path("platlib")}
    environment = {
        **os.environ,
        # An editable install finds its own sources before any path: hence -S.
        "PYTHONPATH": os.pathsep.join([str(sources), *libraries]),
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
            for phase in ("train", "eval", "aux"):
                one = run.series(info.address, info.quantity, phase)
                if len(one):
                    series[f"{info.address} {info.quantity} {phase}"] = {
                        "steps": one.steps.tolist(),
                        "seen": one.seen.tolist(),
                        "rows": one.rows.tolist(),
                    }
        return {
            "info": run.info,
            "sites": {site.address: site.info for site in run.sites},
            "series": series,
            "scalars": {
                name: {"step": scalar.step.tolist(), "value": scalar.value.tolist()}
                for name, scalar in run.scalars.items()
            },
            "losses": [vars_of(loss) for loss in run.losses],
            "events": [[event.step, event.kind, event.address, event.data] for event in run.events],
            "findings": [dict(finding) for finding in run.findings],
        }


def vars_of(record: object) -> dict[str, Any]:
    """The fields of a record."""
    import dataclasses

    assert dataclasses.is_dataclass(record)
    assert not isinstance(record, type)
    return dataclasses.asdict(record)


def is_left_out(path: str) -> bool:
    """Whether a field may differ: a time, or what was changed on purpose."""
    return bool(TIMES.search(path)) or any(re.search(pattern, path) for pattern in CHANGED)


def compared(base: Any, here: Any, path: str = "run") -> Iterator[str]:
    """Every place at which two pieces of plain data differ."""
    if is_left_out(path):
        return
    if isinstance(base, Mapping) and isinstance(here, Mapping):
        for name in sorted({*base, *here}, key=str):
            if name not in base or name not in here:
                where = f"{path}.{name}"
                if not is_left_out(where):
                    yield f"{where}: only {'here' if name in here else 'in the base'}"
            else:
                yield from compared(base[name], here[name], f"{path}.{name}")
    elif isinstance(base, list | tuple) and isinstance(here, list | tuple):
        if len(base) != len(here):
            yield f"{path}: {len(base)} entries, and {len(here)} here"
        else:
            for index, (one, other) in enumerate(zip(base, here, strict=True)):
                yield from compared(one, other, f"{path}[{index}]")
    elif isinstance(base, float) and isinstance(here, float):
        if base != here and not (math.isnan(base) and math.isnan(here)):
            yield f"{path}: {base!r}, and {here!r} here"
    elif base != here:
        yield f"{path}: {base!r:.60}, and {here!r:.60} here"


if __name__ == "__main__":
    sys.exit(main())
