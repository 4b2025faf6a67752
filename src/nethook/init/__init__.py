"""Initialise a network: gains, plans, calibration on data, and the proof.

nethook.init.gain("gelu")
plan = nethook.init.plan(model, inputs)         # reads, changes nothing
nethook.init.apply_(model, plan)
nethook.init.calibrate_(model, inputs)          # one forward
nethook.init.verify(model, inputs)
"""

from nethook.init.calibration.calibrator import calibrate_ as calibrate_
from nethook.init.calibration.result import Calibration as Calibration
from nethook.init.gains.conventions import calculate_gain as calculate_gain
from nethook.init.gains.integrals import Moments as Moments
from nethook.init.gains.integrals import gain as gain
from nethook.init.gains.integrals import moments as moments
from nethook.init.plans.apply import apply_ as apply_
from nethook.init.plans.one_layer import initialize_layer as initialize_layer
from nethook.init.plans.planner import plan as plan
from nethook.init.plans.rows import Plan as Plan
from nethook.init.plans.rows import PlanRow as PlanRow
from nethook.init.proof.measure import verify as verify
from nethook.init.proof.report import LayerScale as LayerScale
from nethook.init.proof.report import Report as Report
from nethook.init.proof.widths import Sweep as Sweep
from nethook.init.proof.widths import sweep as sweep
