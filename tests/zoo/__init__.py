"""The zoo: odd models, each there for one mechanism that a hook can get wrong.

    from tests.zoo import EXHIBITS, observe

`README.md` has the table. A new animal needs an `Exhibit` in the file of its kind, and
`python -m tests.zoo` to write the table again.
"""

from __future__ import annotations

from tests.zoo import (
    attention,
    autograd,
    containers,
    control_flow,
    foreign_hooks,
    inplace,
    lifecycle,
    modes,
    numbers,
    parametrised,
    passthrough,
    randomness,
    recurrent,
    sharing,
    signatures,
    structures,
    wrappers,
)
from tests.zoo.bomb import PLACES, Bomb, Boom, SilentBoom
from tests.zoo.compare import Snapshot, differences, snapshot
from tests.zoo.exhibit import Exhibit, Given
from tests.zoo.hand import HandCall, HandTape, Kept, hand_hooks
from tests.zoo.observe import Observation, Scope, assert_same, built, loss_of, observe, quiet
from tests.zoo.walk import modules_of, paired, tensors_in

__all__ = [
    "EXHIBITS",
    "HOUSES",
    "PLACES",
    "Bomb",
    "Boom",
    "Exhibit",
    "Given",
    "HandCall",
    "HandTape",
    "Kept",
    "Observation",
    "Scope",
    "SilentBoom",
    "Snapshot",
    "assert_same",
    "built",
    "differences",
    "hand_hooks",
    "loss_of",
    "modules_of",
    "observe",
    "paired",
    "quiet",
    "snapshot",
    "tensors_in",
]

# House by house, as a visitor would walk.
HOUSES = (
    inplace,
    sharing,
    passthrough,
    structures,
    signatures,
    recurrent,
    attention,
    control_flow,
    containers,
    parametrised,
    lifecycle,
    foreign_hooks,
    randomness,
    numbers,
    autograd,
    modes,
    wrappers,
)
EXHIBITS: tuple[Exhibit, ...] = tuple(item for house in HOUSES for item in house.EXHIBITS)
