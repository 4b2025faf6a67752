"""Builds what a release has, and tries it: `make wheels`.

    python -m tools.wheels                  3.11, 3.12 and 3.13
    python -m tools.wheels 3.11 3.14        these Pythons

Built: the source archive and, from it, a wheel with the native kernel for each Python that needs
one of its own (3.11; 3.12 and later share the one of 3.12). A kernel that does not compile ends it,
as in a release. `twine check` reads all of them, `auditwheel` names the oldest Linux that they run
on.

Tried, on each Python: the wheel in an empty environment, whose PATH has no compiler. The kernel
must load, and `nethook selftest` and a training that `nethook run` watches must succeed.
Environments are deleted afterwards. The archives are in build/dist; what was said is written to
build/wheels.json.

Only uv is needed, which `make` installs. Pythons are those that uv finds; it downloads none.
"""

# ruff: noqa: T201  (a program that prints for people)

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parent.parent
UV: Final = ROOT / "build" / "uv" / "bin" / "uv"
DIST: Final = ROOT / "build" / "dist"
TRIED: Final = ROOT / "build" / "wheels"
SAID: Final = ROOT / "build" / "wheels.json"
CONSTRAINTS: Final = ROOT / "constraints.txt"

PYTHONS: Final = ("3.11", "3.12", "3.13")
OWN: Final = {"3.11": "cp311-cp311", "3.12": "cp312-abi3"}
"""Python -> the tag of the wheel that is built with it."""

SCRIPT: Final = """\
import torch
torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.ReLU(), torch.nn.Linear(16, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
inputs = torch.randn(256, 8)
targets = inputs.sum(1, keepdim=True)
for step in range(60):
    loss = torch.nn.functional.mse_loss(model(inputs), targets)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""


@dataclass(frozen=True)
class Trial:
    """What one wheel did on one Python."""

    python: str
    wheel: str
    torch: str
    selftest: str
    run: str


def wheel_of(python: str, names: Sequence[str]) -> str:
    """The wheel that an installer takes on this Python."""
    minor = int(python.partition(".")[2])
    tag = OWN["3.11"] if minor < 12 else OWN["3.12"]
    (name,) = (name for name in names if f"-{tag}-" in name)
    return name


def bare_path(environment: Path) -> dict[str, str]:
    """The variables of a process that finds the commands of an environment, and no compiler."""
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("PYTHON", "VIRTUAL_ENV", "CONDA", "CC", "CXX"))
    }
    return {**kept, "PATH": str(environment / "bin")}


def command(
    *words: str | Path, env: Mapping[str, str] | None = None, cwd: Path = ROOT
) -> tuple[int, str]:
    """The exit code, and what was printed."""
    done = subprocess.run(
        [str(word) for word in words],
        cwd=cwd,
        env=None if env is None else dict(env),
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        check=False,
    )
    return done.returncode, done.stdout


def need(*words: str | Path, env: Mapping[str, str] | None = None, cwd: Path = ROOT) -> str:
    """What was printed; ends the program where the command fails."""
    code, said = command(*words, env=env, cwd=cwd)
    if code:
        sys.exit(f"{said}\n`{' '.join(str(word) for word in words)}` ended with {code}.")
    return said


def uv(*words: str | Path, env: Mapping[str, str] | None = None) -> str:
    """The same of a command of uv."""
    cache = {"UV_CACHE_DIR": str(ROOT / "build" / "uv-cache"), "UV_PYTHON_DOWNLOADS": "never"}
    return need(UV, *words, env={**os.environ, **cache, **(env or {})})


def build() -> list[str]:
    """The source archive, and the wheels from it."""
    shutil.rmtree(DIST, ignore_errors=True)
    uv("build", "--sdist", "--out-dir", DIST, "--build-constraints", CONSTRAINTS)
    (source,) = DIST.glob("*.tar.gz")
    for python in OWN:
        uv(
            "build", "--wheel", source, "--python", python, "--out-dir", DIST,
            "--build-constraints", CONSTRAINTS,
            env={"NETHOOK_REQUIRE_NATIVE": "1"},
        )  # fmt: skip
    return sorted(path.name for path in DIST.glob("nethook-*"))


def check(names: Sequence[str]) -> dict[str, str]:
    """What twine and auditwheel say of each archive."""
    files = [DIST / name for name in names]
    uv("tool", "run", "--constraints", CONSTRAINTS, "twine", "check", "--strict", *files)
    said = dict.fromkeys(names, "twine: passed")
    for file in files:
        if file.suffix != ".whl" or sys.platform != "linux":
            continue
        shown = uv("tool", "run", "--constraints", CONSTRAINTS, "auditwheel", "show", file)
        platform = re.search(r'following platform\s+tag:\s+"([^"]+)"', shown)
        if platform is None or platform[1].startswith("linux"):
            sys.exit(f"auditwheel finds no platform that {file.name} is for:\n{shown}")
        said[file.name] += f"; auditwheel: {platform[1]}"
    return said


def try_it(python: str, wheel: str) -> Trial:
    """Install a wheel where nothing else is, and use it."""
    place = TRIED / python
    shutil.rmtree(place, ignore_errors=True)
    try:
        uv("venv", "--python", python, place / "env")
        interpreter = place / "env" / "bin" / "python"
        uv(
            "pip", "install", "--python", interpreter, "--constraint", CONSTRAINTS,
            "--no-build", DIST / wheel,
        )  # fmt: skip
        env = bare_path(place / "env")
        found = shutil.which("c++", path=env["PATH"]) or shutil.which("cc", path=env["PATH"])
        assert found is None, found
        torch = need(interpreter, "-c", "import torch; print(torch.__version__)", env=env)
        selftest = need("nethook", "selftest", "--require-kernel", env=env, cwd=place)
        (place / "train.py").write_text(SCRIPT)
        run = need("nethook", "run", "--to", "train.db", "train.py", env=env, cwd=place)
        need("nethook", "diagnose", "train.db", env=env, cwd=place)
    finally:
        shutil.rmtree(place, ignore_errors=True)
    return Trial(python, wheel, torch.strip(), selftest, run)


def main(words: Sequence[str]) -> int:
    """Build, check and try; print what was said."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("pythons", nargs="*", default=PYTHONS, help="such as 3.11")
    pythons = parser.parse_args(words).pythons
    names = build()
    checked = check(names)
    for name, said in checked.items():
        print(f"{name}\n    {said}", flush=True)
    trials = []
    for python in pythons:
        trial = try_it(python, wheel_of(python, names))
        trials.append(trial)
        print(f"\n-- Python {python}: {trial.wheel}\n{trial.selftest}{trial.run}", flush=True)
    kept = {"archives": checked, "trials": [asdict(trial) for trial in trials]}
    SAID.write_text(json.dumps(kept, indent=1) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
