"""nethook beside other tools: capture, watching, attribution, sweeps.

    make bench-peers                                # all of it; build/peers.json
    make bench-peers ARGS="capture --rounds 9"      # a part; the others stay in the file
    python -m tools.peers_page                      # the tables of docs/compare.md, from that file

Every way does the same work, in a process of its own, and they take turns. A tool that cannot be
installed or does not run is named with the reason.
"""

from __future__ import annotations

import argparse
import json
import platform
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import torch

from peers import capture, watching
from peers.turns import serve, take_turns, version_of

BENCHMARKS = Path(__file__).parents[1]
KEPT = BENCHMARKS.parent / "build" / "peers.json"
PARTS = ("capture", "watching", "attribution", "sweep")


def turns(part: Any, rounds: int) -> dict[str, Any]:
    """A part whose ways take turns."""
    found = take_turns(part.__name__.rpartition(".")[2], part.WAYS, rounds)
    for way, (package, _) in part.WAYS.items():
        found[way]["package"], found[way]["version"] = package, version_of(package)
        if "seconds" in found[way]:
            said = found[way]
            print(f"  {way:28} {1e3 * said['seconds']:9.2f} ms  {said['megabytes']:6.1f} MB")
            for question, answer in said["checks"].items():
                print(f"      {question:12} {answer}")
    return {"rounds": rounds, "steps": part.STEPS, "ways": found}


def program(name: str, *words: str) -> Any:
    """The figures of a benchmark that stands alone."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "figures.json"
        command = [sys.executable, str(BENCHMARKS / name), "--json", str(file), *words]
        subprocess.run(command, check=True)
        return json.loads(file.read_text())


def main() -> None:
    """Measures the parts that are named, or all."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("parts", nargs="*", choices=[*PARTS, []], help="all where none is named")
    parser.add_argument("--rounds", type=int, default=6)
    parser.add_argument("--json", type=Path, default=KEPT)
    options = parser.parse_args()
    kept = json.loads(options.json.read_text()) if options.json.exists() else {}
    if not isinstance(kept, dict):
        kept = {}
    for part in options.parts or PARTS:
        print(f"-- {part}", flush=True)
        rounds = str(options.rounds)
        if part == "capture":
            kept[part] = turns(capture, options.rounds)
        elif part == "watching":
            kept[part] = turns(watching, options.rounds)
        elif part == "attribution":
            kept[part] = program("attributions.py", "--rounds", rounds)
        else:
            kept[part] = program("sweep.py", "--peers", "--rounds", rounds)
        kept["about"] = {"python": platform.python_version(), "torch": torch.__version__}
        options.json.parent.mkdir(parents=True, exist_ok=True)
        options.json.write_text(json.dumps(kept, indent=1, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    if sys.argv[1:2] == ["--serve"]:
        serve(*sys.argv[2:])
    else:
        main()
