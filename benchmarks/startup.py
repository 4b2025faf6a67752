"""What `nethook run` adds to a script of a few seconds, part by part, in seconds of the processor.

    OMP_NUM_THREADS=1 python benchmarks/startup.py [turns] [another python, with another nethook]

One small script is run by `python` and by `nethook run` in turns, each in a process of its own. It
notes the processor time of its process at its first line, after importing torch, after the first
step, in the middle of training and at its last line, and once more when all is said and Python
begins to take the process down; the whole process tree is measured from outside. What `nethook run`
has more between two notes is a part:

    start     from the process's first instruction to the script's first line
    torch     while the script imports torch
    attach    while it builds the network and trains the first step: models are found and hooked
    opening   the first half of the other steps, in which a run is recorded in detail
    steady    the second half; this part grows with the steps, all others do not
    closing   from the script's last line on: the last write, the diagnosis, the verdict
    exit      while Python takes the process down, which takes most of a second in either case and
              varies by a tenth of one: a difference of some milliseconds needs many turns

Fixed is all but the opening and steady watching, which the run counts itself (`watch_seconds` and
`writer_seconds` of its last event). The last look of the doctor is a part of closing, and the run
says what it took (`diagnosis`): apart from that, fixed should be at most 0.3 s.
"""

from __future__ import annotations

import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

STEPS = 400
BUDGETS = ("0.03",)  # "none" adds to `opening` and `steady` alone
PARTS = ("start", "torch", "attach", "opening", "steady", "closing", "exit")
FIXED = ("start", "torch", "attach", "closing", "exit")

SCRIPT = f"""\
import time
notes = [time.process_time()]
import json
import sys
import torch
from torch import nn
notes.append(time.process_time())

torch.manual_seed(0)
model = nn.Sequential(
    nn.Linear(784, 256), nn.ReLU(), nn.Linear(256, 128), nn.ReLU(), nn.Linear(128, 10)
)
optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
inputs = torch.randn(20, 128, 784)
targets = inputs[:, :, :10].argmax(-1)
for step in range({STEPS}):
    loss = nn.functional.cross_entropy(model(inputs[step % 20]), targets[step % 20])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step in (0, {STEPS} // 2):
        notes.append(time.process_time())
print(f"loss {{loss.item():.3f}}")
notes.append(time.process_time())
with open(sys.argv[1], "w") as file:
    json.dump(notes, file)
"""

# Python imports this before anything else. What is registered first is called last: after all that
# the script and nethook have to do.
FIRST = """\
import atexit
import os
import time

def note():
    with open(os.environ["NOTE"], "w") as file:
        file.write(str(time.process_time()))

atexit.register(note)
"""


def run(command: list[str], folder: Path) -> list[float]:
    """Runs the script with this command; what its process tree took up to each note and in all."""
    notes, last = folder / "notes.json", folder / "last.txt"
    path = [str(folder / "first"), *filter(None, [os.environ.get("PYTHONPATH")])]
    environment = {**os.environ, "NOTE": str(last), "PYTHONPATH": os.pathsep.join(path)}
    before = _children()
    done = subprocess.run(
        [*command, "script.py", str(notes)],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        sys.exit(done.stderr)
    whole = _children() - before
    return [*json.loads(notes.read_text()), float(last.read_text()), whole]


def _children() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def parts(mine: list[float], plain: list[float]) -> dict[str, float]:
    """What one process took more than another, between each two notes."""
    more = [0.0, *(one - other for one, other in zip(mine, plain, strict=True))]
    return {name: more[at + 1] - more[at] for at, name in enumerate(PARTS)}


def own_numbers(path: Path) -> dict[str, float]:
    """What the run says that it took: training thread, writer's thread, and the last diagnosis."""
    import nethook

    with nethook.open_run(path) as run:
        closed: Any = next(event.data for event in run.events if event.kind == "watch-closed")
        diagnosis: Any = run.info["diagnosis"]
    return {
        "watching": closed["watch_seconds"],
        "writing": closed["writer_seconds"],
        "looks before the end": closed["doctor_seconds"],
        "diagnosis": diagnosis["seconds"],
    }


def main() -> None:
    """Runs all ways in turns and prints what `nethook run` adds."""
    turns = int(sys.argv[1]) if sys.argv[1:] else 9
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    # An installed nethook is compiled once: without this its files would be in every process.
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    pythons = (sys.executable, *sys.argv[2:])
    ways = [(python, budget) for python in pythons for budget in BUDGETS]
    more: list[list[dict[str, float]]] = [[] for _ in ways]
    own: list[list[dict[str, float]]] = [[] for _ in ways]
    alone: list[float] = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "script.py").write_text(SCRIPT)
        (folder / "first").mkdir()
        (folder / "first" / "sitecustomize.py").write_text(FIRST)
        for turn in range(turns + 1):
            plain = run([sys.executable], folder)
            for at, (python, budget) in enumerate(ways):
                to = folder / f"{turn}-{at}.db"
                command = [python, "-m", "nethook", "run", "--budget", budget, "--to", str(to)]
                mine = run(command, folder)
                if turn:  # the first one compiled the modules and filled the caches
                    more[at].append(parts(mine, plain))
                    own[at].append(own_numbers(to))
            if turn:
                alone.append(plain[-1])
    usual = statistics.median(alone)
    print(f"the script alone: {usual:.2f} s; medians of {turns} turns")
    for at, (python, budget) in enumerate(ways):
        show(f"{python} --budget {budget}", more[at], own[at], usual)


def show(way: str, more: list[dict[str, float]], own: list[dict[str, float]], alone: float) -> None:
    """Prints the parts of one way."""
    fixed = statistics.median(sum(turn[name] for name in FIXED) for turn in more)
    apart = statistics.median(
        sum(turn[name] for name in FIXED) - said["diagnosis"]
        for turn, said in zip(more, own, strict=True)
    )
    before_exit = statistics.median(sum(turn[name] for name in FIXED[:-1]) for turn in more)
    total = statistics.median(sum(turn.values()) for turn in more)
    medians = {name: statistics.median(turn[name] for turn in more) for name in PARTS}
    said = {name: statistics.median(turn[name] for turn in own) for name in own[0]}
    print(f"{way}: fixed {fixed:.3f} s; apart from the diagnosis {apart:.3f} s (at most 0.3); "
          f"without exit {before_exit:.3f} s; "
          f"in all {total:+.3f} s (ratio {(alone + total) / alone:.3f})")  # fmt: skip
    print("  " + "  ".join(f"{name} {seconds:+.3f}" for name, seconds in medians.items()))
    print("  the run says: " + "  ".join(f"{name} {took:.3f}" for name, took in said.items()))


if __name__ == "__main__":
    main()
