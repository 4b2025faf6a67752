"""What numbers are called in other programs: one way for exports and for trackers.

loss/train.py:42, eval_loss/train.py:57          losses, as they are shown everywhere
scalars/grad_norm, scalars/lr:0.0                numbers of the loop, and what was logged
outputs/conv1.std, param_grads/conv1.weight.max  a series, and a column of it
block/encoder.0/update_ratio                     a block of the model
layer/fc2.weight/update_ratio                    a layer that stood out
"""

from __future__ import annotations

import re
from typing import Final

COLUMNS: Final = ("mean", "std", "min", "max", "zero_share", "nonfinite_share")
"""The columns of a series that are shown; of one number per step it is the mean alone."""


def scalar_tag(name: str) -> str:
    """The tag of a scalar."""
    return f"scalars/{name}"


def loss_tag(name: str, phase: str = "train") -> str:
    """The tag of a loss as it is shown: a mean over samples where their number is known."""
    return f"{'' if phase == 'train' else f'{phase}_'}loss/{name}"


def series_tag(address: str, quantity: str, phase: str = "train", column: str = "") -> str:
    """The tag of a series, of one of its columns, or of its histograms."""
    before = "" if phase == "train" else f"{phase}/"
    after = f".{column}" if column else ""
    return f"{before}{quantity}/{address or '(model)'}{after}"


def block_tag(block: str, number: str) -> str:
    """The tag of a number of a block."""
    return f"block/{block or '(model)'}/{number}"


def layer_tag(address: str, number: str) -> str:
    """The tag of a number of a layer that stood out."""
    return f"layer/{address or '(model)'}/{number}"


def cleaned(tag: str, allowed: str = r"A-Za-z0-9_\-. :/") -> str:
    """A tag with `_` in the place of what a tracker does not take; the default is MLflow's."""
    return re.sub(rf"[^{allowed}]", "_", tag)
