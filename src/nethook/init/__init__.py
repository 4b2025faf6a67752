"""Start a network well: gains, plans, calibration on data, and the proof.

nethook.init.gain("gelu")
plan = nethook.init.plan(model, inputs)         # reads, changes nothing
nethook.init.apply_(model, plan)
nethook.init.calibrate_(model, inputs)          # one forward
nethook.init.verify(model, inputs)
"""

from nethook.init.conventions import calculate_gain as calculate_gain
from nethook.init.layers import initialize_layer as initialize_layer
from nethook.init.moments import Moments as Moments
from nethook.init.moments import gain as gain
from nethook.init.moments import moments as moments
