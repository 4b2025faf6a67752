"""The operation that made the first NaN, found at that moment: `nethook.replay` in the process.

The model is there with the weights of the step, and the batch was just saved. Forward and backward
run once more, with everything put back, and nothing of it is watched. A forward that could be
noticed (it prints, opens, connects, writes globals) is stopped before it does so
(`examining/aside.py`).
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

from torch import nn

from nethook.addresses.wrappers import unwrap
from nethook.torch_private import with_function_overrides
from nethook.watching.fail_open import Guard

SECONDS: Final = 10.0
"""After so long it is given up: the batch is in a file, and can be run again at leisure."""


def operation_at_once(path: str | Path, model: nn.Module, guard: Guard) -> dict[str, Any]:
    """What made the NaN whose batch was saved beside a run, as plain data.

    Arguments:
        path: of the run.
        model: as it is called; its weights are those of the step, or the file has them.
        guard: of the watch, which is told nothing meanwhile.

    Returns:
        `operation`, `site`, `source`, `reason`, `case` and ranges as `Replay.to_dict` has them; or
        `not_found` with the reason.
    """
    from nethook.examining.aside import ran_aside
    from nethook.examining.copying import why_not_copied
    from nethook.examining.experiment import NotReplayableError
    from nethook.examining.limits import Deadline
    from nethook.hooks.process.discovery import undiscovered
    from nethook.watching.flight.replaying import replay

    module = unwrap(model)
    if reason := why_not_copied(module):
        return {"not_found": reason}
    try:
        with (
            with_function_overrides(),  # hooks run without, and operations are to be seen here
            guard.paused(),
            undiscovered(),
            ran_aside(module, Deadline(SECONDS, SECONDS)),
        ):
            replayed = replay(path, module)
    except NotReplayableError as error:
        return {"not_found": str(error)}
    except Exception as error:
        return {"not_found": f"{type(error).__name__}: {error}"}
    if not replayed.reproduced:
        return {"not_found": "it did not happen again", "notes": list(replayed.notes)}
    data = replayed.to_dict()
    del data["recorded"]
    return data
