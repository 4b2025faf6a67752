"""Study what causes an output: change one place of a network at a time, and measure.

from nethook import interp

r = interp.sweep(model, base, at="h.*", over="positions", change=interp.take(source), metric=fn)
r.effect, r.recovered, r.top(), r.figure()
"""

from nethook.interp.attention.heads import heads as heads
from nethook.interp.attention.multihead import with_heads as with_heads
from nethook.interp.attention.roles import roles as roles
from nethook.interp.attributions.cams.grad_cam import grad_cam as grad_cam
from nethook.interp.attributions.cams.overlay import overlay as overlay
from nethook.interp.attributions.gradients import input_x_gradient as input_x_gradient
from nethook.interp.attributions.gradients import saliency as saliency
from nethook.interp.attributions.integrated import integrated_gradients as integrated_gradients
from nethook.interp.attributions.occlusion import occlusion as occlusion
from nethook.interp.attributions.op_wise.lift import op_lift as op_lift
from nethook.interp.attributions.sampled import gradient_shap as gradient_shap
from nethook.interp.attributions.sampled import smooth_grad as smooth_grad
from nethook.interp.attributions.shapley import shapley as shapley
from nethook.interp.circuits.ablate import ablate as ablate
from nethook.interp.circuits.causal_trace import causal_trace as causal_trace
from nethook.interp.circuits.circuit import circuit as circuit
from nethook.interp.circuits.paths import paths as paths
from nethook.interp.comparing.cka import cka as cka
from nethook.interp.dictionaries.splice import splice as splice
from nethook.interp.directions.erasure import erase as erase
from nethook.interp.directions.finding import direction as direction
from nethook.interp.directions.probing import probe as probe
from nethook.interp.estimates.attribute import attribute as attribute
from nethook.interp.lenses.direct import logit_attribution as logit_attribution
from nethook.interp.lenses.lens import lens as lens
from nethook.interp.lenses.tuned import tuned_lens as tuned_lens
from nethook.interp.loading import load as load
from nethook.interp.results.attribution import Attribution as Attribution
from nethook.interp.results.cam import Cam as Cam
from nethook.interp.results.sweep import Sweep as Sweep
from nethook.interp.rewriting.rewrite import rewrite as rewrite
from nethook.interp.subspaces.das import das as das
from nethook.interp.sweeping.changes import mean_of as mean_of
from nethook.interp.sweeping.changes import noise_at as noise_at
from nethook.interp.sweeping.changes import resample as resample
from nethook.interp.sweeping.changes import take as take
from nethook.interp.sweeping.sweep import sweep as sweep
from nethook.interp.viewing.receptive_field import receptive_field as receptive_field
from nethook.interp.viewing.visualize import visualize as visualize
