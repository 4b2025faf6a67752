"""A run of many ranks: how long opening, an overview and a diagnosis take, and how much memory.

    .venv/bin/python benchmarks/ranks.py                 # 1,000 ranks of 1,000 series
    .venv/bin/python benchmarks/ranks.py 16 100 1000

The files are written to a folder below the current one, and deleted afterwards. One rank is written
with made-up numbers, as in benchmarks/scale.py; the others are copies of it with their own rank. A
process of its own then reads them. What is printed for one rank in the same run is the baseline.
Seconds are those of the clock; "processor" is what the process itself took of them, which other
programs on the machine change less.
"""

from __future__ import annotations

import json
import resource
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from scale import SERIES, Simulation, declare

import nethook
from nethook.runs.writing.writer import RunWriter

WINDOWS = 30
MOST_SECONDS, MOST_MEGABYTES = 5.0, 500.0


def write(folder: Path, ranks: int) -> Path:
    """A run of so many ranks."""
    path = folder / "run.db"
    simulation = Simulation()
    with RunWriter(path, world_size=ranks) as writer:
        declare(writer)
        window = writer.window()
        for step in range(WINDOWS):
            simulation.fill(window, step, 1)
            window = writer.submit(window)
            writer.log("loss:train.py:9", 1.0 / (1 + step), step)
            writer.log("params_fingerprint", float(step), step)
            writer.flush(60)
    for rank in range(1, ranks):
        copy = folder / f"run.rank{rank}.db"
        shutil.copyfile(path, copy)
        connection = sqlite3.connect(copy)
        connection.execute("UPDATE info SET value = ? WHERE key = 'rank'", (str(rank),))
        connection.commit()
        connection.close()
    return path


def read(path: Path) -> None:
    """Open, overview, diagnose; print seconds of each, and processor and memory in all."""
    seconds = {}
    started = time.process_time()
    begin = time.perf_counter()
    with nethook.open_run(path) as run:
        seconds["open"] = time.perf_counter() - begin
        begin = time.perf_counter()
        run.overview()
        seconds["overview"] = time.perf_counter() - begin
    begin = time.perf_counter()
    nethook.diagnose(path)
    seconds["diagnosis"] = time.perf_counter() - begin
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(json.dumps({**seconds, "processor": time.process_time() - started, "memory": memory}))


def main() -> None:
    """Measure runs of several sizes."""
    counts = [int(word) for word in sys.argv[1:]] or [1, 16, 1000]
    print(f"{SERIES:,} series, {WINDOWS} windows; seconds, and MB at the peak")
    print(
        f"{'ranks':>6}  {'open':>7}  {'overview':>8}  {'diagnosis':>9}  {'in all':>7}  "
        f"{'processor':>9}  {'memory':>7}"
    )
    for ranks in counts:
        with tempfile.TemporaryDirectory(dir=".") as folder:
            path = write(Path(folder), ranks)
            command = [sys.executable, __file__, "--read", str(path)]
            said = json.loads(subprocess.run(command, check=True, capture_output=True).stdout)
        total = said["open"] + said["overview"] + said["diagnosis"]
        print(
            f"{ranks:6,}  {said['open']:7.2f}  {said['overview']:8.2f}  {said['diagnosis']:9.2f}  "
            f"{total:7.2f}  {said['processor']:9.2f}  {said['memory']:7.0f}"
        )
    print(f"of 1,000 ranks at most {MOST_SECONDS:g} s and {MOST_MEGABYTES:g} MB")


if __name__ == "__main__":
    if sys.argv[1:2] == ["--read"]:
        read(Path(sys.argv[2]))
    else:
        main()
