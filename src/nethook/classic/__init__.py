"""The names that existing code imports; `nethook.Trace` is `nethook.classic.Trace`.

The submodule `rome` has the same names for code of that family. The functions from before
`InstrumentedModel` (`retain_layers` …) and its helpers are here and not among the public names.
"""

from nethook.addresses.lookup import get_module as get_module
from nethook.addresses.lookup import get_parameter as get_parameter
from nethook.classic import rome as rome
from nethook.classic.blending import apply_ablation_replacement as apply_ablation_replacement
from nethook.classic.blending import get_and_match_shape as get_and_match_shape
from nethook.classic.blending import make_matching_tensor as make_matching_tensor
from nethook.classic.calling import invoke_with_optional_args as invoke_with_optional_args
from nethook.classic.copying import recursive_copy as recursive_copy
from nethook.classic.instrumented import InstrumentedModel as InstrumentedModel
from nethook.classic.layers import clear_edit as clear_edit
from nethook.classic.layers import edit_layer_output as edit_layer_output
from nethook.classic.layers import edit_layers as edit_layers
from nethook.classic.layers import retain_layer_output as retain_layer_output
from nethook.classic.layers import retain_layers as retain_layers
from nethook.classic.modules import module_names as module_names
from nethook.classic.modules import parameter_names as parameter_names
from nethook.classic.modules import replace_module as replace_module
from nethook.classic.modules import set_requires_grad as set_requires_grad
from nethook.classic.subsequences import hierarchical_subsequence as hierarchical_subsequence
from nethook.classic.subsequences import subsequence as subsequence
from nethook.classic.trace import StopForward as StopForward
from nethook.classic.trace import Trace as Trace
from nethook.classic.trace_dict import TraceDict as TraceDict
