"""nethook as a callback of transformers' Trainer, and of trainers built on it (TRL and others).

from nethook.hf import NethookCallback

trainer = Trainer(model, args, train_dataset=data, callbacks=[NethookCallback("runs/bert.db")])
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

try:
    from transformers import TrainerCallback
except ImportError:
    from nethook.errors import MissingLibraryError

    raise MissingLibraryError(
        "nethook.hf needs transformers, which is not installed: pip install transformers"
    ) from None

from nethook.files import read_file, write_file
from nethook.integrations.trainer_run import RecordsRun, read_state

KEPT: Final = "nethook.json"
"""The file in a checkpoint that names its run and step."""


class NethookCallback(RecordsRun, TrainerCallback):
    """Records every training of a `Trainer` in a run, with what the trainer logs.

    What the trainer logs is kept as `trainer/NAME`. A checkpoint has a file that names the run and
    the step: a training that goes on from it goes on in its run. Under `nethook run` the numbers
    go to the run that is open.

    Arguments: those of `nethook.integrations.trainer_run.RecordsRun`.
    """

    def on_train_begin(
        self, args: Any, state: Any, control: Any, *, model: Any = None, optimizer: Any = None,
        **_: Any,
    ) -> None:  # fmt: skip
        """Begins the run, or goes on in that of the checkpoint."""
        kept = _kept_in(args, state) if state.global_step else {}
        # Accelerate puts a coat around optimizers.
        plain = getattr(optimizer, "optimizer", optimizer)
        self.trainer_run.begin(
            model, [] if plain is None else [plain], resume=kept.get("run"), step=kept.get("step")
        )

    def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        """Ends the training where a finding is to end it."""
        if self.trainer_run.react():
            control.should_training_stop = True

    def on_log(
        self, args: Any, state: Any, control: Any, *, logs: Mapping[str, Any] | None = None,
        **_: Any,
    ) -> None:  # fmt: skip
        """Keeps what the trainer logs; it also does so after the end."""
        self.trainer_run.log(logs or {})

    def on_save(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        """Names the run in the checkpoint."""
        folder = _checkpoint(args, state)
        kept = self.kept_state()
        if kept and state.is_world_process_zero and folder.is_dir():
            with suppress(OSError):  # a full disk is the trainer's matter
                write_file(folder / KEPT, json.dumps(kept).encode())

    def on_train_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        """The run ends with the training."""
        self.trainer_run.end()


def _checkpoint(args: Any, state: Any) -> Path:
    return Path(args.output_dir) / f"checkpoint-{state.global_step}"


def _kept_in(args: Any, state: Any) -> dict[str, Any]:
    """The run and the step that the checkpoint names; nothing where it names none."""
    try:
        return read_state(json.loads(read_file(_checkpoint(args, state) / KEPT, most=1 << 16)))
    except (OSError, ValueError):
        return {}
