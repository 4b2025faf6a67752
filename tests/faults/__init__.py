"""Faults that a run must survive, one file per kind of fault.

Each file has the same three names, and `KINDS` lists the files:

    TITLE = "interrupts"       # what `make faults` prints
    TRIES = 500                # how many tries `make faults` makes; `make test` makes `SHORT`
    SHORT = 10
    def attempt(seed: int, folder: Path) -> None:
        '''One try, decided by its seed alone, in an empty folder. An exception is a failure.'''
"""

from __future__ import annotations

# One name per line: branches add to it.
KINDS: tuple[str, ...] = (
    "attach_cycles",
    "damaged_files",
    "hostile_folders",
    "interrupts",
    "kills",
)
