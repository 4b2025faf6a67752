"""Start a network well: gains, plans, calibration on data, and the proof.

nethook.init.gain("gelu")
plan = nethook.init.plan(model, inputs)         # reads, changes nothing
nethook.init.apply_(model, plan)
nethook.init.calibrate_(model, inputs)          # one forward
nethook.init.verify(model, inputs)
"""

from nethook.init.apply import apply_ as apply_
from nethook.init.calibrate import calibrate_ as calibrate_
from nethook.init.calibration import Calibration as Calibration
from nethook.init.conventions import calculate_gain as calculate_gain
from nethook.init.layers import initialize_layer as initialize_layer
from nethook.init.moments import Moments as Moments
from nethook.init.moments import gain as gain
from nethook.init.moments import moments as moments
from nethook.init.plan import Plan as Plan
from nethook.init.plan import PlanRow as PlanRow
from nethook.init.planning import plan as plan
from nethook.init.report import LayerScale as LayerScale
from nethook.init.report import Report as Report
from nethook.init.sweep import Sweep as Sweep
from nethook.init.sweep import sweep as sweep
from nethook.init.verify import verify as verify
