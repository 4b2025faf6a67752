"""Look inside any PyTorch network, and change what happens there.

    import nethook

    with nethook.trace(model, "conv*", "fc?", grads=True) as tape:
        loss_fn(model(x), y).backward()
    print(tape)
    tape["fc1"].output, tape["fc1"].grad

The names below are all that is public. Each is loaded when it is first used, so that `import
nethook` and `nethook --help` import neither torch nor numpy: a script that sets `OMP_NUM_THREADS`
before its own `import torch` must find it obeyed. Nothing at all is imported here: with `python -m
nethook` the folder that it is called in comes first, and a `typing.py` there is not Python's.
"""

TYPE_CHECKING = False  # which type checkers take for true

if TYPE_CHECKING:  # the same names once more, for type checkers and editors
    from nethook import classic as classic
    from nethook import errors as errors
    from nethook import figures as figures
    from nethook import init as init
    from nethook import interp as interp
    from nethook import sinks as sinks
    from nethook import types as types
    from nethook.addresses.inputs import Inputs as Inputs
    from nethook.addresses.inputs import inputs as inputs
    from nethook.addresses.lookup import get_module as get_module
    from nethook.addresses.lookup import get_parameter as get_parameter
    from nethook.addresses.select import select as select
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
    from nethook.doctor.diagnose import assert_healthy as assert_healthy
    from nethook.doctor.diagnose import diagnose as diagnose
    from nethook.doctor.finding import Finding as Finding
    from nethook.editing import edits as edits
    from nethook.editing.callbacks.callbacks import Callbacks as Callbacks
    from nethook.editing.parameters import preserve as preserve
    from nethook.editing.parameters import set_parameter as set_parameter
    from nethook.editing.scope import edit as edit
    from nethook.extracting.dataset import load_features as load_features
    from nethook.extracting.extract import extract as extract
    from nethook.extracting.features import features as features
    from nethook.hooks.audit import audit as audit
    from nethook.hooks.suspend import suspended as suspended
    from nethook.preflight import checkup as checkup
    from nethook.runs.reading.run import open_run as open_run
    from nethook.tracing.attention.probs import attention_probs as attention_probs
    from nethook.tracing.autograd.graph import autograd_graph as autograd_graph
    from nethook.tracing.scope import trace as trace
    from nethook.tracing.sites.survey import sites as sites
    from nethook.watching.flight.replaying import replay as replay
    from nethook.watching.watch import watch as watch

    __version__: str

__all__ = [
    "Callbacks",
    "Finding",
    "Inputs",
    "assert_healthy",
    "attention_probs",
    "audit",
    "autograd_graph",
    "checkup",
    "classic",
    "diagnose",
    "edit",
    "edits",
    "errors",
    "extract",
    "features",
    "figures",
    "get_module",
    "get_parameter",
    "init",
    "inputs",
    "interp",
    "load_features",
    "open_run",
    "preserve",
    "replay",
    "select",
    "set_parameter",
    "sinks",
    "sites",
    "suspended",
    "trace",
    "types",
    "watch",
]

# Public name -> the module that holds it; the names of modules stand below.
_SOURCES = {
    "Callbacks": "nethook.editing.callbacks.callbacks",
    "Finding": "nethook.doctor.finding",
    "Inputs": "nethook.addresses.inputs",
    "assert_healthy": "nethook.doctor.diagnose",
    "attention_probs": "nethook.tracing.attention.probs",
    "audit": "nethook.hooks.audit",
    "autograd_graph": "nethook.tracing.autograd.graph",
    "checkup": "nethook.preflight",
    "diagnose": "nethook.doctor.diagnose",
    "edit": "nethook.editing.scope",
    "extract": "nethook.extracting.extract",
    "features": "nethook.extracting.features",
    "get_module": "nethook.addresses.lookup",
    "get_parameter": "nethook.addresses.lookup",
    "inputs": "nethook.addresses.inputs",
    "load_features": "nethook.extracting.dataset",
    "open_run": "nethook.runs.reading.run",
    "preserve": "nethook.editing.parameters",
    "replay": "nethook.watching.flight.replaying",
    "select": "nethook.addresses.select",
    "set_parameter": "nethook.editing.parameters",
    "sites": "nethook.tracing.sites.survey",
    "suspended": "nethook.hooks.suspend",
    "trace": "nethook.tracing.scope",
    "watch": "nethook.watching.watch",
    # Known, and not listed as public: the names that existing code imports. They stand in
    # `nethook.classic`.
    "InstrumentedModel": "nethook.classic.instrumented",
    "StopForward": "nethook.classic.trace",
    "Trace": "nethook.classic.trace",
    "TraceDict": "nethook.classic.trace_dict",
    "hierarchical_subsequence": "nethook.classic.subsequences",
    "invoke_with_optional_args": "nethook.classic.calling",
    "module_names": "nethook.classic.modules",
    "parameter_names": "nethook.classic.modules",
    "recursive_copy": "nethook.classic.copying",
    "replace_module": "nethook.classic.modules",
    "set_requires_grad": "nethook.classic.modules",
    "subsequence": "nethook.classic.subsequences",
    "apply_ablation_replacement": "nethook.classic.blending",
    "clear_edit": "nethook.classic.layers",
    "edit_layer_output": "nethook.classic.layers",
    "edit_layers": "nethook.classic.layers",
    "get_and_match_shape": "nethook.classic.blending",
    "make_matching_tensor": "nethook.classic.blending",
    "retain_layer_output": "nethook.classic.layers",
    "retain_layers": "nethook.classic.layers",
}
_MODULES = {
    "classic": "nethook.classic",
    "edits": "nethook.editing.edits",
    "errors": "nethook.errors",
    "figures": "nethook.figures",
    "init": "nethook.init",
    "interp": "nethook.interp",
    "sinks": "nethook.sinks",
    "types": "nethook.types",
}


def _load(name: str) -> object:
    """Load a public name on its first use."""
    import importlib

    value: object
    if name in _SOURCES:
        value = getattr(_with_a_torch_that_fits(_SOURCES[name]), name)
    elif name == "errors":
        value = importlib.import_module("nethook.errors")
    elif name in _MODULES:
        value = _with_a_torch_that_fits(_MODULES[name])
    elif name == "__version__":
        # The installed metadata is the one place that knows; reading it takes milliseconds.
        from importlib.metadata import version

        value = version("nethook")
    else:
        raise AttributeError(_no_such_name(name), name=name)
    globals()[name] = value  # found directly from now on
    return value


def _with_a_torch_that_fits(module: str) -> object:
    """Import a module of ours; an old torch is an error, a new one that changed much a warning."""
    import importlib
    import sys

    from nethook.torch_versions import NEWEST, refuse_old_torch, release, torch_version

    refuse_old_torch()
    loaded = importlib.import_module(module)
    version = torch_version() if "torch" in sys.modules else None
    if version is not None and release(version) > NEWEST:
        from nethook.hooks.canaries.newer import warn_if_changed

        warn_if_changed()
    return loaded


if not TYPE_CHECKING:  # a module with __getattr__ has every name, to a type checker
    __getattr__ = _load  # PEP 562


def __dir__() -> list[str]:
    """The public names, so that completion offers them and no room of the package."""
    return sorted({*__all__, *(name for name in globals() if name[:2] == "__"), "__version__"})


def _no_such_name(name: str) -> str:
    from difflib import get_close_matches

    # Case is no reason to miss a name: `nethook.Select` means `select`.
    spelling = {public.lower(): public for public in (*_SOURCES, *__all__)}
    close = get_close_matches(name.lower(), spelling, n=1)
    hint = f" Did you mean `nethook.{spelling[close[0]]}`?" if close else ""
    return f"module 'nethook' has no attribute {name!r}.{hint}"
