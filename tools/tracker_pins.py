"""constraints.txt for the environment of `make trackers`.

    python -m tools.tracker_pins     the lines, on standard output

Trackers ask for older versions of a few packages than the rest is tested with. No package is needed
for this: it runs before there is an environment.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parent.parent
OTHERWISE: Final = {
    "importlib-metadata": "9.1.0",  # mlflow asks for importlib-metadata<10
    "pillow": "12.3.0",  # trackio asks for pillow<13
    "protobuf": "6.33.6",  # swanlab asks for protobuf<7
    "pyarrow": "25.0.1",  # mlflow asks for pyarrow<26; without it pip takes an mlflow of 2022
}
"""Package -> the version that goes with the trackers."""


def pins(constraints: str) -> str:
    """The lines of constraints.txt, with what must differ for trackers."""
    lines = []
    for line in constraints.splitlines():
        name, exact, _ = line.partition("==")
        lines.append(f"{name}=={OTHERWISE[name]}" if exact and name in OTHERWISE else line)
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    sys.stdout.write(pins((ROOT / "constraints.txt").read_text(encoding="utf-8")))
