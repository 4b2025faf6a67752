"""The types of what nethook returns, for annotations.

    from nethook.types import Run, Tape

    def largest_activation(tape: Tape) -> float: ...
    def last_loss(run: Run) -> float: ...

None of them is made by hand: each docstring says which function returns it.
"""

from nethook.addresses.inputs import Inputs
from nethook.doctor.finding import Finding
from nethook.examining.checkup.result import Checkup
from nethook.init.plans.rows import Plan
from nethook.interp.attention.heads import Heads
from nethook.interp.attention.roles import Roles
from nethook.interp.comparing.cka import CKA
from nethook.interp.dictionaries.splice import Splice
from nethook.interp.directions.direction import Direction
from nethook.interp.directions.probe import Probe
from nethook.interp.estimates.estimate import Estimate
from nethook.interp.lenses.lens import Lens
from nethook.interp.lenses.tuned import TunedLens
from nethook.interp.results.attribution import Attribution
from nethook.interp.results.cam import Cam
from nethook.interp.results.sweep import Sweep
from nethook.interp.subspaces.das import Subspace
from nethook.interp.viewing.receptive_field import ReceptiveField
from nethook.interp.viewing.visualize import Visualisation
from nethook.runs.reading.run import Run
from nethook.tracing.sites.site_map import SiteMap
from nethook.tracing.tape.record import Record
from nethook.tracing.tape.tape import Tape
from nethook.watching.flight.replaying import Replay
from nethook.watching.watch import Watch

__all__ = [
    "CKA",
    "Attribution",
    "Cam",
    "Checkup",
    "Direction",
    "Estimate",
    "Finding",
    "Heads",
    "Inputs",
    "Lens",
    "Plan",
    "Probe",
    "ReceptiveField",
    "Record",
    "Replay",
    "Roles",
    "Run",
    "SiteMap",
    "Splice",
    "Subspace",
    "Sweep",
    "Tape",
    "TunedLens",
    "Visualisation",
    "Watch",
]
