"""Every private name of torch that nethook uses, each behind the question that it answers.

No other file of `src/` uses a name of torch with a leading underscore, so a torch that renames one
breaks nethook here. Each entry gives the question, the versions that have the name, the plain way
where it is missing, and what is lost then. `nethook.hooks.canaries` has one check per entry;
`python -m nethook --version` runs them.

`NETHOOK_PLAIN=torch._lazy_clone,...` (or `all`) takes the plain way although the name is there: to
work around a torch in which one misbehaves, and to test the plain ways.
"""

from __future__ import annotations

import gc
import importlib
import sys
from collections import OrderedDict
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import cache, partial
from operator import attrgetter, call, methodcaller
from types import CodeType, FrameType
from typing import Any, Final

import torch
from torch import Tensor, nn

from nethook.private_names import NAMES, exists, look_up, name, note, reader

Table = OrderedDict[int, Any]
"""A dict of hooks, by the number of each hook."""

# -- What this thread is doing ---------------------------------------------------------------------

backward_id: Callable[[], int] = name(
    "torch._C._current_graph_task_id",
    "Which backward pass runs in this thread? -1: none",
    "a forward that a checkpoint computes again counts as one more call",
    lambda: -1,
)
in_transform: Callable[[], bool] = name(
    "torch._C._are_functorch_transforms_active",
    "Does vmap, grad or another transform of torch.func run?",
    "values inside transforms are not recognised, and an error may come from torch",
    lambda: False,
)
function_modes: Callable[[], int] = name(
    "torch._C._len_torch_function_stack",
    "How many TorchFunctionModes are on?",
    "operations between modules cannot be seen",
)
dispatch_modes: Callable[[], int] = name(
    "torch._C._len_torch_dispatch_stack",
    "How many TorchDispatchModes are on?",
    "a dispatch mode of the user's sees nethook's reads",
    lambda: 0,
)
is_tracing: Callable[[], bool] = name(
    "torch._C._is_tracing",
    "Does torch.jit.trace run? Sizes are tensors of the trace then",
    "nothing but a fraction of a microsecond",
    vars(torch.jit)["is_tracing"],
)
push_function_mode: Callable[[Any], None] = name(
    "torch._C._push_on_torch_function_stack",
    "How does a mode come on, wherever it is in the stack?",
    "operations between modules cannot be seen",
)
pop_function_mode: Callable[[], Any] = name(
    "torch._C._pop_torch_function_stack",
    "Which mode is on top, and how does it come off?",
    "operations between modules cannot be seen",
)
function_mode_at: Callable[[int], Any] = name(
    "torch._C._get_function_stack_at",
    "Which modes are on?",
    "operations between modules cannot be seen",
)
default_device_mode: Any = name(
    "torch.utils._device.DeviceContext",
    "Which mode is that of `torch.set_default_device`, which insists on being the lowest?",
    "where a default device is set, what follows a model's output is not recorded",
    (),
)
without_dispatch_modes: Callable[[], AbstractContextManager[Any]] = name(
    "torch.utils._python_dispatch._disable_current_modes",
    "How do the user's dispatch modes not see what nethook reads?",
    "a dispatch mode of the user's sees nethook's reads",
    nullcontext,
)
without_transforms: Callable[[], AbstractContextManager[Any]] = name(
    "torch._C._DisableFuncTorch",
    "How is a plain tensor made while a transform runs?",
    "nethook must be imported outside transforms",
    nullcontext,
)
without_function_overrides: Callable[[], AbstractContextManager[Any]] = name(
    "torch._C.DisableTorchFunction",
    "How do function modes and tensor subclasses not see what nethook reads?",
    "modes and subclasses of the user's see nethook's reads",
    nullcontext,
)
with_function_overrides: Callable[[], AbstractContextManager[Any]] = name(
    "torch._C._EnableTorchFunction",
    "How does a mode of ours see calls again, inside `without_function_overrides`?",
    "losses that a model computes by itself are not known to its examinations",
    nullcontext,
)
set_grad: Callable[[bool], Any] = name(
    "torch._C._set_grad_enabled",
    "How is recording for backward switched, in one call that a signal cannot cut in two?",
    "nothing but a microsecond",
    torch.set_grad_enabled,
)
is_autocast: Callable[[], bool] = name(
    "torch._C._is_any_autocast_enabled",
    "Is mixed precision on, for any device?",
    "mixed precision on devices other than CPU and CUDA is not noticed",
    lambda: torch.is_autocast_enabled("cpu") or torch.is_autocast_enabled("cuda"),
)
_forward_ad = importlib.import_module("torch.autograd.forward_ad")
_level = reader(
    "torch.autograd.forward_ad._current_level",
    "Is forward-mode differentiation on? -1: no",
    "copies are made as if it were on",
    lambda _: 0,
)
dual_level: Callable[[], int] = partial(_level, _forward_ad)
"""The level of forward-mode differentiation that is on; -1: none."""
saved_tensors_hooks: Callable[[bool], Any] = name(
    "torch._C._autograd._top_saved_tensors_default_hooks",
    "Are hooks on, by which tensors that backward needs are kept elsewhere?",
    "copies that could be lazy are true ones",
    lambda _: (None, None),
)
_engine: Any = name(
    "torch.autograd.Variable._execution_engine",
    "How is a function called when the backward pass that runs has ended?",
    "gradients that arrive in parts cannot be added up",
)


def queue_callback(function: Callable[[], None]) -> None:
    """Calls `function` at the end of the backward pass that runs in this thread."""
    _engine.queue_callback(function)


# -- Tensors ---------------------------------------------------------------------------------------

version_of: Callable[[Tensor], int] = reader(
    "torch.Tensor._version", "How often was the tensor written to?", "writes cannot be noticed"
)
note(
    "torch.Tensor._base",
    "Which tensor is it a view of?",
    "gradients of views that are written to get lost",
)


def base_of(tensor: Tensor) -> Tensor | None:
    """The tensor of which it is a view; None: it is none. Also asked in compiled code."""
    return tensor._base


is_view: Callable[[Tensor], bool] = name(
    "torch.Tensor._is_view",
    "Is it a view?",
    "nothing",
    lambda tensor: base_of(tensor) is not None,
)
hooks_of_tensor: Callable[[Tensor], Table | None] = reader(
    "torch.Tensor._backward_hooks",
    "Which gradient hooks does the tensor have?",
    "gradients of what modules return cannot be watched",
)
accumulate_hooks_of: Callable[[Tensor], Table | None] = reader(
    "torch.Tensor._post_accumulate_grad_hooks",
    "Which hooks are called after a gradient was added to `.grad`?",
    "audit does not list them",
    lambda _: None,
)
HOOKS_OF_TENSORS: Final = {
    "gradient": hooks_of_tensor,
    "accumulated_gradient": accumulate_hooks_of,
}
"""Kind of hook -> the function that reads such hooks of a tensor."""
storage_id: Callable[[torch.UntypedStorage], int] = reader(
    "torch.UntypedStorage._cdata",
    "Which memory is it? A number that stays the same, also of memory without bytes",
    "memory is known by its address, which is the same for all empty ones",
    methodcaller("data_ptr"),
)
is_zero_tensor: Callable[[Tensor], bool] = name(
    "torch.Tensor._is_zerotensor",
    "Is it a tensor of zeros without memory, as forward-mode differentiation makes them?",
    "it is counted as freed",
    lambda _: False,
)
sparse_indices: Callable[[Tensor], Tensor] = name(
    "torch.Tensor._indices",
    "Where are the values of a sparse tensor, coalesced or not?",
    "a sparse tensor is coalesced to be measured",
    lambda tensor: tensor.coalesce().indices(),
)
sparse_values: Callable[[Tensor], Tensor] = name(
    "torch.Tensor._values",
    "Which values has a sparse tensor, coalesced or not?",
    "a sparse tensor is coalesced to be measured",
    lambda tensor: tensor.coalesce().values(),
)
local_of: Callable[[Any], Tensor] = reader(
    "torch.distributed.tensor.DTensor._local_tensor",
    "Which part of a tensor that is spread over ranks is here, without a trace in autograd?",
    "reading it is recorded by autograd",
    lambda spread: spread.to_local(),
)
overlaps: Callable[[Tensor], int] = name(
    "torch._debug_has_internal_overlap",
    "Do two elements share memory? 0: no",
    "gradients of views that are written to get lost",
    lambda _: 1,
)
norms: Callable[..., list[Tensor]] = name(
    "torch._foreach_norm",
    "The norms of many tensors in one call",
    "norms take one call per tensor",
    lambda tensors, order, dtype=None: [
        torch.linalg.vector_norm(tensor, order, dtype=dtype) for tensor in tensors
    ],
)
lazy_clone: Callable[[Tensor], Tensor] = name(
    "torch._lazy_clone",
    "A copy that takes memory only when one of the two is written to",
    "copies take memory at once",
    torch.clone,
)
uses_of: Callable[[Tensor], int] = name(
    "torch.Tensor._use_count",
    "How many own this tensor?",
    "copies take memory at once",
    lambda _: 0,
)
owners_of: Callable[[int], int] = name(
    "torch._C._storage_Use_Count",
    "How many own this memory? By its `storage_id`",
    "copies take memory at once",
    lambda _: 0,
)
set_versions: Callable[[Iterable[Tensor], Iterable[int]], None] = name(
    "torch._C._autograd._unsafe_set_version_counter",
    "How does a tensor that was put back, bit for bit, count as not written to?",
    "a graph that was made before a look refuses its backward after it",
    lambda *_: None,
)
is_of_a_transform: Callable[[Tensor], bool] = name(
    "torch._C._functorch.is_functorch_wrapped_tensor",
    "Is it a value inside a transform of torch.func?",
    "values inside transforms are not recognised, and an error may come from torch",
    lambda _: False,
)
dispatch_keys: Callable[[Tensor], Any] = name(
    "torch._C._dispatch_keys",
    "What is special about this tensor: layout, device, wrappers, lazy conjugation?",
    "no tensor can be measured",
)
DispatchKey: Any = name(
    "torch._C.DispatchKey", "Which kinds of special are there?", "no tensor can be measured"
)
data_address: Callable[[Tensor], int] = name(
    "torch._C._data_address",
    "Where does the memory of a tensor begin, to be read only? Lazy copies stay lazy",
    "asking ends the laziness of a lazy copy",
    lambda tensor: tensor.untyped_storage().data_ptr(),
)


def first_element(tensor: Tensor) -> int:
    """The address of a tensor's first element, to be read only: lazy copies stay lazy."""
    return data_address(tensor) + int(tensor.storage_offset()) * tensor.element_size()


def _table_by_a_hook(tensor: Tensor, _: object) -> Any:
    handle = tensor.register_hook(lambda _: None)
    table = hooks_of_tensor(tensor)
    handle.remove()
    return table


def _table_by_itself(tensor: Tensor, node: Any) -> Table:
    table: Table = OrderedDict()
    tensor._backward_hooks = table
    node._register_hook_dict(tensor)
    return table


new_table_of: Callable[[Tensor, Any], Table] = (
    _table_by_itself
    if note(
        "torch.autograd.graph.Node._register_hook_dict",
        "How does a node learn of the gradient hooks of a tensor that has none yet?",
        "putting on a gradient hook takes a few microseconds longer",
        has_plain_way=True,
    )
    else _table_by_a_hook
)
"""`new_table_of(tensor, node)`: the dict of gradient hooks of a tensor that has none yet."""


# -- Nodes of autograd -----------------------------------------------------------------------------

next_node_number: Callable[[], int] = name(
    "torch._C._autograd._get_sequence_nr",
    "Which number will the next node of this thread have?",
    "what a module computed cannot be told from what others did",
)
note(
    "torch.autograd.graph.Node._sequence_nr",
    "Which number has a node?",
    "what a module computed cannot be told from what others did",
)
node_number: Callable[[Any], int] = methodcaller("_sequence_nr")
note(
    "torch.autograd.graph.Node._input_metadata",
    "Which shapes have the results of an operation, whose node is all that is left of it?",
    "shapes are missing in graphs and in what is said of losses",
)
note(
    "torch.autograd.graph.Node._saved_self",
    "What did an operation save for its backward? As `_saved_` and the name of the argument",
    "the kind of a loss, its predictions and its targets are not known",
)
note(
    "torch.autograd.graph.Node._raw_saved_self",
    "Did it save a tensor, or a number?",
    "the kind of a loss, its predictions and its targets are not known",
)


def shapes_of_node(node: Any) -> Sequence[Any]:
    """Shape and type of each result of an operation; nothing where torch does not know."""
    return getattr(node, "_input_metadata", ())


def saved_by(node: Any, what: str) -> Any:
    """What an operation saved for its backward, by the argument's name; None where nothing."""
    return getattr(node, f"_saved_{what}", None)


def reader_of_saved(what: str) -> Callable[[Any], Any]:
    """As `saved_by` for one argument, where it is asked in every step: an error where nothing."""
    return attrgetter(f"_saved_{what}")  # which knows the name; a new string is looked up slowly


def raw_saved_by(node: Any, what: str) -> Any:
    """The same, not yet unpacked; None where nothing was saved."""
    return getattr(node, f"_raw_saved_{what}", None)


_HOOK_OF_SAVED: Final = "torch._C._autograd.SavedTensor.unpack_hook"
_tells_hooks: Final = note(
    _HOOK_OF_SAVED,
    "Would reading what an operation saved run a hook of the script's?",
    "while a profiler runs, the kind of a loss, its predictions and its targets are not known",
    has_plain_way=True,
    since="2.10",
) and exists(_HOOK_OF_SAVED)


def saved_without_hooks(node: Any, what: str) -> Any:
    """As `saved_by`; None where a hook of the script's would have to run for it."""
    raw = raw_saved_by(node, what)
    if raw is None:
        return None
    in_python = type(raw) is tuple and not hasattr(type(node), f"_saved_{what}")
    if _tells_hooks:
        each = raw if type(raw) is tuple else (raw,)  # several tensors, by which was indexed
        if any(one.unpack_hook is not None for one in each):
            return None
        return node.saved_tensors if in_python else saved_by(node, what)
    return None if in_python else _saved_unless_a_function_runs(node, what)


@cache
def reader_without_hooks(what: str) -> Callable[[Any], Any]:
    """As `saved_without_hooks` for one tensor, where it is asked in every step; may raise."""
    if not _tells_hooks:
        return partial(saved_without_hooks, what=what)
    raw, saved = attrgetter(f"_raw_saved_{what}"), attrgetter(f"_saved_{what}")

    def read(node: Any) -> Any:
        return saved(node) if raw(node).unpack_hook is None else None

    return read


class _RefusedError(Exception):
    """A Python function was about to run."""


def _refuse(frame: FrameType, event: str, _: object) -> None:
    if event != "call" or frame.f_back is None or frame.f_back.f_code is not _READER:
        return  # what a function calls that was let through
    # A handler of a signal is given the frame that it interrupts; a hook never is. Of what has just
    # been called only the arguments are there.
    given = [*frame.f_locals.values()]
    given += [one for value in given if type(value) is tuple for one in value]
    if not any(isinstance(value, FrameType) for value in given):
        raise _RefusedError


def _saved_unless_a_function_runs(node: Any, what: str) -> Any:
    # Torch does not say whether there is a hook. But it calls one, and Python asks before it does.
    # It asks before destructors, too: they are not hooks, so none may run meanwhile. Both are
    # switched in one call, which no signal can cut in two.
    if sys.getprofile() is not None:
        return None
    undo = _ALSO_COLLECT if gc.isenabled() else _ASK_NO_MORE
    try:
        any(map(_call, _ASK_ALONE))
        return getattr(node, f"_saved_{what}", None)
    except _RefusedError:
        return None
    finally:
        any(map(_call, undo))


_Act = Callable[[], object]
_call: Callable[[_Act], object] = call
_READER: Final = _saved_unless_a_function_runs.__code__
# All of these return None, so `any` calls each.
_ASK_ALONE: Final[tuple[_Act, ...]] = (gc.disable, partial(sys.setprofile, _refuse))
_ASK_NO_MORE: Final[tuple[_Act, ...]] = (partial(sys.setprofile, None),)
_ALSO_COLLECT: Final[tuple[_Act, ...]] = (*_ASK_NO_MORE, gc.enable)


def saves_its_result(node: Any) -> bool:
    """Whether an operation keeps what it returned, for its backward."""
    return hasattr(node, "_raw_saved_result")


@cache
def saved_names_of(kind: type) -> tuple[str, ...]:
    """What operations may save for their backward, by name; `kind` is the class of a node."""
    return tuple(name[11:] for name in dir(kind) if name.startswith("_raw_saved_"))


def everything_saved_by(node: Any) -> list[Any]:
    """All that an operation saved for its backward; what was freed raises torch's error."""
    return [getattr(node, name) for name in dir(node) if name.startswith("_saved_")]


# -- Modules ---------------------------------------------------------------------------------------

children_of: Callable[[nn.Module], dict[str, nn.Module | None]] = reader(
    "torch.nn.Module._modules",
    "Which modules does it hold, also twice, also None?",
    "a module that is held twice is seen once",
    lambda module: dict(module.named_children()),
)
parameters_of: Callable[[nn.Module], dict[str, nn.Parameter | None]] = reader(
    "torch.nn.Module._parameters",
    "Which parameters does it hold itself, also twice, also None?",
    "a parameter cannot be put in the place of another",
)
buffers_of: Callable[[nn.Module], dict[str, Tensor | None]] = reader(
    "torch.nn.Module._buffers",
    "Which buffers does it hold itself, also twice, also None?",
    "a buffer cannot be put in the place of another",
)
note(
    "torch.nn.Module._non_persistent_buffers_set",
    "Which buffers are not saved?",
    "a look at a model that adds buffers in its forward leaves them behind",
)
CHILDREN: Final = "_modules"
"""The attribute in which a module holds its children."""
HOLD_PARTS: Final = ("_parameters", "_buffers", CHILDREN)
"""Attributes in which a module holds its parts."""
NOT_SAVED: Final = "_non_persistent_buffers_set"
"""The attribute that names buffers that are not saved."""
compiled_call_of: Callable[[nn.Module], Any] = reader(
    "torch.nn.Module._compiled_call_impl",
    "Was the module compiled in place (`module.compile()`)? Its compiled call, or None",
    "hooks on modules that were compiled in place are not called",
    lambda _: None,
)
COMPILED_CALL: Final = "_compiled_call_impl"
"""The attribute that holds it."""
CALL: Final[CodeType] = name(
    "torch.nn.Module._call_impl",
    "Which frames on a stack are calls of modules?",
    "tracebacks show nethook's frames, and helper threads of a model are not recognised",
    nn.Module.__call__,
).__code__
FULL_BACKWARD: Final = "_is_full_backward_hook"
note(
    "torch.nn.Module._is_full_backward_hook",
    "Which of two kinds of backward hooks does a module have?",
    "a look at a model whose forward adds backward hooks leaves a mark behind",
)
REPLICA: Final = "_is_replica"
note(
    "torch.nn.Module._replicate_for_data_parallel",
    "Is a module a copy that nn.DataParallel runs in a thread? It has `_is_replica` then",
    "nn.DataParallel is taken for a thread of somebody else's",
)
BatchNorms: Any = name(
    "torch.nn.modules.batchnorm._BatchNorm",
    "Is it a batch normalisation, also one of another library's?",
    "batch normalisations of other libraries are not recognised",
    (nn.BatchNorm1d, nn.BatchNorm2d, nn.BatchNorm3d, nn.SyncBatchNorm),
)
InstanceNorms: Any = name(
    "torch.nn.modules.instancenorm._InstanceNorm",
    "Is it an instance normalisation, also one of another library's?",
    "instance normalisations of other libraries are not recognised",
    (nn.InstanceNorm1d, nn.InstanceNorm2d, nn.InstanceNorm3d),
)
Dropouts: Any = name(
    "torch.nn.modules.dropout._DropoutNd",
    "Is it a dropout, also one of another library's?",
    "dropouts of other libraries are not recognised",
    (nn.Dropout, nn.Dropout1d, nn.Dropout2d, nn.Dropout3d, nn.AlphaDropout),
)

# -- Hooks of modules ------------------------------------------------------------------------------

HOOKS_OF_MODULES: Final = {
    "forward_pre": "_forward_pre_hooks",
    "forward": "_forward_hooks",
    "backward_pre": "_backward_pre_hooks",
    "backward": "_backward_hooks",
    "state_dict_pre": "_state_dict_pre_hooks",
    "state_dict": "_state_dict_hooks",
    "load_state_dict_pre": "_load_state_dict_pre_hooks",
    "load_state_dict_post": "_load_state_dict_post_hooks",
}
"""Kind of hook -> the attribute in which a module keeps such hooks."""
OPTIONS_OF_HOOKS: Final = {
    "forward_pre": ("_forward_pre_hooks_with_kwargs",),
    "forward": ("_forward_hooks_with_kwargs", "_forward_hooks_always_called"),
}
"""Kind of hook -> attributes that note how a hook is called, by the hook's number."""
HOOKS_ON_ALL_MODULES: Final = {
    "global_forward_pre": "_global_forward_pre_hooks",
    "global_forward": "_global_forward_hooks",
    "global_backward_pre": "_global_backward_pre_hooks",
    "global_backward": "_global_backward_hooks",
    "global_buffer_registration": "_global_buffer_registration_hooks",
    "global_module_registration": "_global_module_registration_hooks",
    "global_parameter_registration": "_global_parameter_registration_hooks",
}
"""Kind of hook -> the name in torch.nn.modules.module."""
OPTIONS_ON_ALL_MODULES: Final = (
    "_global_forward_hooks_with_kwargs",
    "_global_forward_hooks_always_called",
)
HOOKS_ON_ALL_OPTIMIZERS: Final = {
    "global_optimizer_step_pre": "_global_optimizer_pre_hooks",
    "global_optimizer_step": "_global_optimizer_post_hooks",
}
"""Kind of hook -> the name in torch.optim.optimizer."""

for _kind, _attribute in HOOKS_OF_MODULES.items():
    note(
        f"torch.nn.Module.{_attribute}",
        f"Which {_kind} hooks does a module have, in which order?",
        "hooks cannot be put on, listed or silenced",
    )
for _attribute in (option for options in OPTIONS_OF_HOOKS.values() for option in options):
    note(
        f"torch.nn.Module.{_attribute}",
        "Which of a module's hooks are called with keyword arguments, or after an error?",
        "hooks cannot be put on",
    )

forward_pre_hooks_of: Callable[[nn.Module], Table] = attrgetter("_forward_pre_hooks")
forward_hooks_of: Callable[[nn.Module], Table] = attrgetter("_forward_hooks")
pre_hooks_with_kwargs_of: Callable[[nn.Module], Table] = attrgetter(
    "_forward_pre_hooks_with_kwargs"
)
hooks_with_kwargs_of: Callable[[nn.Module], Table] = attrgetter("_forward_hooks_with_kwargs")
hooks_always_called_of: Callable[[nn.Module], Table] = attrgetter("_forward_hooks_always_called")


def _global_table(path: str, question: str) -> Table:
    lost = "hooks on all modules are neither put on nor listed: operations are not seen"
    note(path, question, lost)
    # One of our own, in which nobody looks, rather than an error for whoever needs none of them.
    return look_up(path) if exists(path) else OrderedDict()


GLOBAL_HOOKS: Final[dict[str, Table]] = {}
"""Kind of hook on all modules and all optimizers -> the dict in which torch keeps them."""
for _place, _kinds in (
    ("torch.nn.modules.module", HOOKS_ON_ALL_MODULES),
    ("torch.optim.optimizer", HOOKS_ON_ALL_OPTIMIZERS),
):
    for _kind, _attribute in _kinds.items():
        GLOBAL_HOOKS[_kind] = _global_table(
            f"{_place}.{_attribute}", f"Which {_kind} hooks are on?"
        )
global_with_kwargs, global_always_called = (
    _global_table(
        f"torch.nn.modules.module.{option}",
        "Which hooks on all modules are called with keyword arguments, or after an error?",
    )
    for option in OPTIONS_ON_ALL_MODULES
)
ANY_GLOBAL_HOOK: Final = "_has_any_global_hook"
"""The function of torch.nn.modules.module that says whether a module's call is hooked globally."""
any_global_hook: Callable[[], bool] = name(
    f"torch.nn.modules.module.{ANY_GLOBAL_HOOK}",
    "Does a hook of anybody's run for every module?",
    "torch warns of nethook's hooks when a compiled module is called",
    lambda: False,
)

# -- Functions that nethook wraps ------------------------------------------------------------------

CHECKPOINT_GENERATORS: Final = {
    "_checkpoint_without_reentrant_generator": ("2.8", "2.13"),
    "_checkpoint_without_reentrant_generator_impl": ("2.14", ""),
}
"""The function that every checkpoint calls, the oldest first -> since which torch, until which.

From 2.14 on the older name is for callers outside torch, and calls the newer one.
"""
for _function, (_since, _until) in CHECKPOINT_GENERATORS.items():
    note(
        f"torch.utils.checkpoint.{_function}",
        "Where does a checkpoint keep what it has to run again?",
        "operations that a checkpoint computes again are not known again",
        since=_since,
        until=_until,
    )
_OLDER, _NEWER = CHECKPOINT_GENERATORS
CHECKPOINT_GENERATOR: Final = _NEWER if exists(f"torch.utils.checkpoint.{_NEWER}") else _OLDER
"""The one that checkpoints call in this torch."""
NATIVE_LOSSES: Final = "torch._C._nn"
"""Where most functions of torch.nn.functional look up, at every call, what computes a loss."""
note(
    f"{NATIVE_LOSSES}.cross_entropy_loss",
    "Which loss was computed where there is no graph to read, as in an evaluation?",
    "evaluation losses are not recorded",
)
CLIP_NORM: Final = "_clip_grads_with_norm_"
note(
    f"torch.nn.utils.clip_grad.{CLIP_NORM}",
    "With which limit and which norm were gradients clipped?",
    "clipping is not recorded",
)
CLIP_GROUPS: Final = "_group_tensors_by_device_and_dtype"
note(
    f"torch.nn.utils.clip_grad.{CLIP_GROUPS}",
    "Were gradients clipped by value?",
    "clipping by value is not recorded",
)
FRAMES_UP: Final = "_frames_up"
"""An argument of torch.jit.script: how many frames up the names are that it looks for."""
NOT_OPERATIONS: Final = (
    "_clear_non_serializable_cached_data", "_dimI", "_dimV", "_is_view", "_nnz",
    "_record_function_enter_new", "_record_function_exit", "_set_grad_enabled", "_sym_sqrt",
)  # fmt: skip
"""Functions that a function mode is told of and that compute no tensor."""

# -- Compilers -------------------------------------------------------------------------------------

COMPILER_PACKAGE: Final = "torch._dynamo"
COMPILER: Final = f"{COMPILER_PACKAGE}.eval_frame"
"""The module without which nothing can have been compiled. Importing it takes seconds."""
COMPILER_CALLBACKS: Final = "torch._dynamo.callback"
COMPILER_SETTINGS: Final = "torch._dynamo.config"
OF_COMPILER: Final = ("torch._dynamo", "torch._guards", "torch.compiler")
"""How the names begin whose canaries import the compiler."""
note(
    f"{COMPILER}.OptimizedModule",
    "Is a module what torch.compile returned?",
    "compiled code silently bypasses hooks that came after torch.compile",
)
note(
    f"{COMPILER_CALLBACKS}.callback_handler",
    "When does torch compile something?",
    "a model that is only called inside a compiled function is not followed",
)
note(
    f"{COMPILER_SETTINGS}.skip_nnmodule_hook_guards",
    "Does compiled code check which hooks its modules have?",
    "compiled code may bypass the hooks of a watch",
)
note(
    "torch._dynamo.reset_code_caches",
    "How does torch compile again what it compiled without hooks?",
    "compiled code may bypass the hooks of a watch",
)
note("torch._guards.CompileContext", "Is something being compiled now?", "as the one before")
WARNED: Final = "torch._dynamo.utils.warn_once_cache"
_WARNS_OF_SKIPPED: Final = (
    note(
        WARNED,
        "Which warnings has the compiler given, and gives no more?",
        "torch 2.12 warns that a model compiled with fullgraph=True runs eagerly in a scope",
        has_plain_way=True,
        since="2.12",
        until="2.12",
    )
    and NAMES[WARNED].is_expected
)
# What torch 2.12 says of a model that was compiled with `fullgraph=True` and ran eagerly, even if
# `torch.compiler.set_stance` asked for that. From 2.13 on it says nothing then.
_SKIPPED: Final = (
    "torch.compile with fullgraph=True found no compiled frames. "
    "The frame was likely skipped (e.g., a non-infra torch dispatch "
    "mode was active, dynamo was disabled, or the frame was skipped. "
    "This may become an error in the future."
)


EXPORTING: Final = "torch.compiler._is_exporting_flag"


def _exporting() -> bool:
    return torch.compiler._is_exporting_flag


is_exporting: Callable[[], bool] = (
    _exporting
    if note(
        EXPORTING,
        "Does torch.export run? Also asked in compiled code",
        "up to torch 2.11, which takes each compilation for an export, nothing inside compiled "
        "code is seen",
        has_plain_way=True,
    )
    and exists(EXPORTING)
    else torch.compiler.is_exporting
)


def is_compiled(module: nn.Module) -> bool:
    """Whether a module is what `torch.compile(module)` returns."""
    return isinstance(module, sys.modules[COMPILER].OptimizedModule)


def compiler_callbacks() -> Any:
    """Torch's list of functions to call when it compiles; its module has been imported."""
    return sys.modules[COMPILER_CALLBACKS].callback_handler


def check_hooks(on: bool) -> None:
    """Lets graphs that are compiled from now on check the hooks of their modules, or not."""
    settings: Any = sys.modules[COMPILER_SETTINGS]
    settings.skip_nnmodule_hook_guards = not on


def forget_compiled() -> None:
    """Lets torch compile again what it compiled so far, when it is next called."""
    if COMPILER not in sys.modules:
        return
    from torch._guards import CompileContext

    if CompileContext.current_compile_id() is None:  # otherwise its own code would be taken away
        sys.modules["torch._dynamo"].reset_code_caches()


def expect_skipped_graphs() -> bool:
    """Stops the compiler warning that whole graphs run eagerly. Returns whether it would have."""
    if not _WARNS_OF_SKIPPED or _SKIPPED in look_up(WARNED):
        return False
    look_up(WARNED).add(_SKIPPED)
    return True


def warn_of_skipped_graphs() -> None:
    """Takes `expect_skipped_graphs` back."""
    look_up(WARNED).discard(_SKIPPED)


note(
    "torch._dynamo.convert_frame.FRAME_COUNTER",
    "Has anything been compiled? It would be compiled again where a mode is on",
    "where the compiler is loaded, what follows a model's output is not recorded",
)


def compiled_frames() -> int:
    """How many functions were compiled in this process, as far as is known."""
    loaded = sys.modules.get("torch._dynamo.convert_frame")
    return 0 if loaded is None else int(getattr(loaded, "FRAME_COUNTER", 1))


# -- Data loaders ----------------------------------------------------------------------------------

_LOADER: Final = "torch.utils.data.dataloader._BaseDataLoaderIter"
loader_iterator: Any = name(
    _LOADER,
    "Does a batch come from a DataLoader?",
    "that rows are samples is not known: what needs that is a question",
    object,
)
sampler_of_loader: Callable[[Any], Any] = reader(
    f"{_LOADER}._index_sampler",
    "Which samples are a batch?",
    "whether a loader shuffles is not known",
    lambda _: None,
)
dataset_of_loader: Callable[[Any], Any] = reader(
    f"{_LOADER}._dataset",
    "How many samples are there?",
    "that a sampler leaves samples out is not known",
    lambda _: None,
)
collates: Callable[[Any], bool] = reader(
    f"{_LOADER}._auto_collation",
    "Does a loader put samples together?",
    "as of the name before the last",
    lambda _: False,
)

# -- Wrappers and ranks ----------------------------------------------------------------------------

WRAPPERS: Final = (
    ("torch.nn.parallel", "DataParallel", "module"),
    ("torch.nn.parallel", "DistributedDataParallel", "module"),
    ("torch.optim.swa_utils", "AveragedModel", "module"),
    (COMPILER, "OptimizedModule", "_orig_mod"),
    ("torch.distributed.algorithms._checkpoint.checkpoint_wrapper", "ActivationWrapper",
     "_checkpoint_wrapped_module"),
    ("torch.distributed.fsdp.fully_sharded_data_parallel", "FullyShardedDataParallel",
     "_fsdp_wrapped_module"),
)  # fmt: skip
"""Module that defines a wrapper, its class, the attribute that holds what is wrapped."""
for _place, _class, _attribute in WRAPPERS:
    if "_" in (_attribute[0], _place.partition(".")[2][0]):
        note(
            f"{_place}.{_class}()",
            f"What does a wrapper of this class hold? `{_attribute}`",
            "addresses have the wrapper's name in them",
        )
ddp_at_work: Callable[[Any], Any] = reader(
    "torch.nn.parallel.DistributedDataParallel._active_ddp_module",
    "Which DistributedDataParallel runs its forward now?",
    "losses are not known to be averaged over ranks",
    lambda _: None,
)
note(
    "torch.distributed.fsdp.FSDPModule._get_fsdp_state",
    "Which parameters does FSDP2 gather together, and for which shards?",
    "parameters of FSDP2 are not recognised while they are gathered",
)
note(
    "torch.distributed._functional_collectives.AsyncCollectiveTensor",
    "Is a tensor still on its way from other ranks?",
    "such a tensor is recorded as a subclass, without numbers",
)


def fsdp_groups_of(module: Any) -> Iterable[Any]:
    """The groups of parameters that FSDP2 gathers together for one of its modules."""
    state = module._get_fsdp_state()
    groups: Iterable[Any] | None = getattr(state, "_fsdp_param_groups", None)
    if groups is None:  # up to torch 2.11 there is one at most
        group = getattr(state, "_fsdp_param_group", None)
        groups = () if group is None else (group,)
    return groups


def gathered(parameter: Any) -> Tensor | None:
    """What FSDP2 puts in a shard's place while a layer runs; None where it has not yet."""
    return getattr(parameter, "_unsharded_param", None)


def type_on_its_way() -> Any:
    """The class of tensors that are on their way from other ranks; None where nobody has any."""
    module = sys.modules.get("torch.distributed._functional_collectives")
    return getattr(module, "AsyncCollectiveTensor", None)


# -- Others ----------------------------------------------------------------------------------------

FakeTensor: Any = name(
    "torch._subclasses.fake_tensor.FakeTensor",
    "Does a tensor have a shape and no values?",
    "shapes cannot be known before the first forward",
    (),
)
FakeTensorMode: Any = name(
    "torch._subclasses.fake_tensor.FakeTensorMode",
    "How is a forward computed with shapes alone?",
    "shapes cannot be known before the first forward",
)
FakeCopyMode: Any = name(
    "torch._subclasses.fake_tensor.FakeCopyMode",
    "How is a model copied without memory?",
    "shapes cannot be known before the first forward",
)
pytree: Any = name(
    "torch.utils._pytree",
    "How is a container of another library's taken apart and put together?",
    "containers of other libraries are recorded as objects",
)
note(
    "torch.nn.attention.bias.CausalBias._materialize",
    "Which mask does a causal bias stand for?",
    "attention patterns of a causal bias cannot be computed",
)


def mask_of_bias(bias: Any, device: torch.device) -> Tensor:
    """The mask that a causal bias stands for."""
    mask: Tensor = bias._materialize(device)
    return mask


ITERATOR_OF_LOADER: Final = "_iterator"
note(
    "torch.utils.data.DataLoader._iterator",
    "Where does a loader keep workers that stay? A copy of it must not share them",
    "extract shares the workers of the loader it was given",
)
