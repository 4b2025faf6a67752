"""`load`: any result of a study, as it was saved."""

from __future__ import annotations

import json
from importlib import import_module
from pathlib import Path
from typing import Any, Final

from nethook.errors import ResultError
from nethook.interp.results.files import first_name

_WHERE: Final = {
    "nethook_attribution": "results.attribution:Attribution",
    "nethook_cam": "results.cam:Cam",
    "nethook_cka": "comparing.cka:CKA",
    "nethook_subspace": "subspaces.das:Subspace",
    "nethook_direction": "directions.direction:Direction",
    "nethook_lens": "lenses.lens:Lens",
    "nethook_probe": "directions.probe:Probe",
    "nethook_receptive_field": "viewing.receptive_field:ReceptiveField",
    "nethook_recovered": "dictionaries.splice:Recovered",
    "nethook_steering_curve": "directions.curve:SteeringCurve",
    "nethook_sweep": "results.sweep:Sweep",
    "nethook_tuned_lens": "lenses.tuned:TunedLens",
    "nethook_verified": "estimates.estimate:Verified",
    "nethook_visualisation": "viewing.visualize:Visualisation",
}
"""What a file begins with -> the class that reads it."""


def load(path: str | Path) -> Any:
    """A result that was saved, whatever study it is of; nothing in the files is run.

        interp.load("runs/gpt.studies/patching.json").figure()

    Raises:
        ResultError: it is no result of a study, or cannot be read.
    """
    path = Path(path)
    kind = first_name(path)
    if kind not in _WHERE:
        raise ResultError(
            f"{path.name} must be a file that `save` of a study has written; it begins with "
            f"{json.dumps(kind)[:60]}."
        )
    module, _, name = _WHERE[kind].partition(":")
    return getattr(import_module(f"nethook.interp.{module}"), name).load(path)
