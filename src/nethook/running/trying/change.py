"""A fix as plain data: what is changed from outside, for which finding, and what must get better.

A file of `fixes/` has two functions:

    propose(finding, run) -> Change | None        # in the process that read the run
    apply(change, hooks, done)                    # in the trial, as soon as torch is imported

`done()` is called whenever the change took place; where it never is, nothing was tried.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Literal, TypeAlias

Judge: TypeAlias = Literal["train", "eval"]


@dataclass(frozen=True)
class Change:
    """One fix.

    Arguments:
        fix: the file of `fixes/` that applies it; "" for none: the script as it is.
        code: the finding that it belongs to.
        said: the change in a few words: `learning rate 0.1 → 0.001`.
        numbers: what `apply` needs to know.
        judged_by: which loss must fall: that of training, or that of evaluations, where the change
            is to the training's batches or only to evaluations.
    """

    fix: str = ""
    code: str = ""
    said: str = ""
    numbers: Mapping[str, float] = field(default_factory=dict)
    judged_by: Judge = "train"

    def to_json(self) -> str:
        """The change as text."""
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> Change:
        """The change that a text holds."""
        return cls(**json.loads(text))
