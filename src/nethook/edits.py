"""The catalogue of edits: `nethook.edits`."""

from nethook.editing.catalogue import (
    Edit as Edit,
    add as add,
    clamp as clamp,
    clip_norm as clip_norm,
    keep_units as keep_units,
    noise as noise,
    patch as patch,
    project_out as project_out,
    replace as replace,
    scale as scale,
    steer as steer,
    zero as zero,
    zero_units as zero_units,
)
