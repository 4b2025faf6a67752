"""One check per private name of torch: does it still answer the question that nethook asks?

A canary asks the question in a situation where the answer is known. So it fails where a name is
missing, and also where it means something else than it did. `python -m nethook --version` runs them
all; a torch that is newer than those nethook was tested with has them run on first use.
"""

from __future__ import annotations

import sys
import warnings

from nethook.hooks.canaries import functions, modules, tensors, threads  # noqa: F401 - the checks
from nethook.hooks.canaries.registry import CANARIES
from nethook.private_names import NAMES, PrivateName
from nethook.torch_private import COMPILER, OF_COMPILER


def failing(*, quick: bool = False) -> list[PrivateName]:
    """The private names that this torch lacks or uses otherwise, although it should have them.

    With `quick`, those of the compiler are left out unless somebody has imported it: that takes
    seconds.
    """
    left_out = quick and COMPILER not in sys.modules
    return [
        name
        for path, name in NAMES.items()
        if name.is_expected and not (left_out and path.startswith(OF_COMPILER)) and not works(path)
    ]


def works(path: str) -> bool:
    """Whether the canary of one name finds what it expects."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return bool(CANARIES[path]())
        except Exception:  # whatever another torch does
            return False
