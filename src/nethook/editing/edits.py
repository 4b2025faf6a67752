"""The public module `nethook.edits`: the catalogue of edits, and recipes of them.

edits.scale(0.5)
edits.clamp(min=0, calls=slice(1, None))     # from the second call on
edits.save("calm.json", outputs={"h.3": edits.steer(direction, -2.0)})
"""

from nethook.editing.catalogue import (
    Edit,
    add,
    add_low_rank,
    answer,
    clamp,
    clip_norm,
    erase,
    keep_units,
    mask,
    noise,
    only,
    patch,
    project_out,
    replace,
    scale,
    steer,
    swap_subspace,
    zero,
    zero_units,
)
from nethook.editing.recipes import load, save

__all__ = [
    "Edit",
    "add",
    "add_low_rank",
    "answer",
    "clamp",
    "clip_norm",
    "erase",
    "keep_units",
    "load",
    "mask",
    "noise",
    "only",
    "patch",
    "project_out",
    "replace",
    "save",
    "scale",
    "steer",
    "swap_subspace",
    "zero",
    "zero_units",
]
