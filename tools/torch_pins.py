"""constraints.txt for another torch than the pinned one.

    python -m tools.torch_pins 2.15.0     the lines, on standard output

`make test TORCH=2.15.0` installs with them. Beside a version, `newest` takes what the registry has.
No package is needed for this: it runs before there is an environment.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parent.parent
OFTEN: Final = ("2.8.0", "2.11.0", "2.13.0", "2.15.0")
"""What `make torches` runs."""
SELDOM: Final = ("2.9.1", "2.10.0", "2.12.1", "2.14.1")
"""What `make torches ARGS=all` runs as well."""
NEWEST: Final = "newest"
"""No version: torch is not pinned at all."""

# Everything else is the same for all of them, transformers, lightning, accelerate and monai
# included: `uv pip check` holds it against what the packages ask for, each time.
OTHERWISE: Final[dict[str, dict[str, str]]] = {
    "2.11": {"setuptools": "81.0.0"},  # this torch asks for setuptools<82
    "2.12": {"setuptools": "81.0.0"},  # this one, too
}
"""Minor release of torch -> package -> the version that goes with it."""


def is_torch(word: str) -> bool:
    """Whether a word names a torch: `2.15.0`, `2.15`, `newest`."""
    return word == NEWEST or re.fullmatch(r"\d+\.\d+(\.\d+)?", word) is not None


def pins(torch: str, constraints: str) -> str:
    """The lines of constraints.txt with this torch, and what must differ because of it."""
    minor = ".".join(torch.split(".")[:2])
    other = {name: f"{name}=={version}" for name, version in OTHERWISE.get(minor, {}).items()}
    # `2.15` is any 2.15.
    exact = f"torch=={torch}" if torch.count(".") == 2 else f"torch=={torch}.*"
    other["torch"] = "" if torch == NEWEST else exact
    lines = [other.get(line.partition("==")[0], line) for line in constraints.splitlines()]
    return "\n".join(line for line in lines if line) + "\n"


if __name__ == "__main__":
    if len(sys.argv) != 2 or not is_torch(sys.argv[1]):
        sys.exit(f"Which torch? A version such as {OFTEN[-1]}, or newest.")
    sys.stdout.write(pins(sys.argv[1], (ROOT / "constraints.txt").read_text(encoding="utf-8")))
