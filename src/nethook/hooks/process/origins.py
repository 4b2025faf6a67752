"""Where optimizers and weights come from: the line of a constructor, and what was loaded.

While it is on, every optimizer and scheduler is noted when it is made, so that nobody has to look
for it among all objects, and every parameter that `load_state_dict` fills; and which `state_dict`
was kept while its weights went on learning. The lists are of the process, as the functions are that
are wrapped; they hold nothing alive.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterable
from typing import Any, Final

import torch
from torch import nn
from torch.nn.modules import module as module_hooks
from torch.optim import Optimizer, lr_scheduler

from nethook.hooks.attachment import Attachment
from nethook.hooks.hook import Hook, Owner
from nethook.hooks.modes import quiet
from nethook.hooks.process.lost_loads import forget_loads, note_load
from nethook.hooks.process.source_line import line_of_script
from nethook.hooks.wrapped import WrappedFunction
from nethook.torch_private import version_of

_optimizers: Final[dict[int, tuple[weakref.ref[Optimizer], str]]] = {}
_schedulers: Final[dict[int, tuple[weakref.ref[Any], str]]] = {}
_loaded: Final[dict[int, weakref.ref[torch.Tensor]]] = {}
_registered: Final[dict[int, weakref.ref[torch.Tensor]]] = {}
_states: Final[dict[int, tuple[weakref.ref[Any], int]]] = {}
_loads: Final[dict[str, int]] = {}
_again: Final[dict[int, tuple[weakref.ref[nn.Module], dict[str, Any]]]] = {}
_unmatched: Final[dict[int, tuple[weakref.ref[nn.Module], dict[str, Any]]]] = {}
_LOADED_MARK: Final = "_is_hf_initialized"
"""What transformers sets on a parameter that it has loaded by itself."""
_MOST: Final = 100_000
"""Loaded tensors that are remembered: a script may make and load a network in every step."""
_KINDS: Final = (
    Optimizer,
    lr_scheduler.LRScheduler,
    lr_scheduler.ChainedScheduler,
    lr_scheduler.ReduceLROnPlateau,
    lr_scheduler.SequentialLR,
)
"""What is noted; the last three do not call the constructor of the class they are derived from."""
_MOST_STATES: Final = 64
"""States that are remembered at once: of the best epoch, of each member of an ensemble."""
_WRITES: Final = 8
"""Writes to a weight that its constructor and an initialisation may make; a training makes more."""


def note_origins(hooks: Attachment) -> None:
    """Notes what is made and loaded, until the hooks are removed."""
    for kind in _KINDS:
        noted = _optimizers if kind is Optimizer else _schedulers
        making = _OnMaking(hooks.owner, kind.__name__, noted)
        hooks.add(WrappedFunction(kind, "__init__", making))
    hooks.add(WrappedFunction(nn.Module, "load_state_dict", _OnLoading(hooks.owner, "Module")))
    hooks.add(WrappedFunction(nn.Module, "state_dict", _OnState(hooks.owner, "Module")))
    registering = _OnRegistering(hooks.owner, "Module")
    hooks.add(module_hooks.register_module_parameter_registration_hook(registering))
    _loads.clear()
    _again.clear()
    _unmatched.clear()
    forget_loads()


def optimizers_made() -> list[Optimizer]:
    """The optimizers that were noted and are still there, the first one first."""
    there = ((key, reference()) for key, (reference, _) in list(_optimizers.items()))
    alive = []
    for key, optimizer in there:
        if optimizer is None:
            _optimizers.pop(key, None)
        else:
            alive.append(optimizer)
    return alive


def line_of_optimizer(optimizer: Optimizer) -> str:
    """The line that made an optimizer, `train.py:42`; nothing where it is not known."""
    reference, line = _optimizers.get(id(optimizer), (None, ""))
    return line if reference is not None and reference() is optimizer else ""


def lines_of_schedulers(optimizer: Optimizer) -> list[str]:
    """The lines that made the schedulers of an optimizer, the first one first."""
    lines = []
    for key, (reference, line) in list(_schedulers.items()):
        scheduler = reference()
        if scheduler is None:
            _schedulers.pop(key, None)
        elif getattr(scheduler, "optimizer", None) is optimizer and line:
            lines.append(line)
    return list(dict.fromkeys(lines))


def steps_planned(optimizer: Optimizer) -> list[int]:
    """How many steps the schedulers of an optimizer were laid out for, of those that say so."""
    made = [reference() for reference, _ in list(_schedulers.values())]
    planned = [
        getattr(one, "total_steps", None)
        for one in made
        if getattr(one, "optimizer", None) is optimizer
    ]
    return [steps for steps in planned if isinstance(steps, int)]


def was_loaded(model: nn.Module) -> bool:
    """Whether a model, or a part of it, was given weights that somebody has trained before.

    Models of transformers bring their own loader, and know what they were made from.
    """
    for module in model.modules():
        source = getattr(vars(module).get("config"), "_name_or_path", "")
        if isinstance(source, str) and source:
            return True
    return any(_is_loaded(parameter) for parameter in model.parameters())


def was_filled(tensor: torch.Tensor) -> bool:
    """Whether a parameter is known to be more than a random start: loaded, or trained before."""
    if _is_loaded(tensor) or getattr(tensor, _LOADED_MARK, False) is True:
        return True
    return not tensor.is_inference() and version_of(tensor) > _WRITES


def was_registered(tensor: torch.Tensor) -> bool:
    """Whether a parameter was ever given to a module, which may be gone by now."""
    reference = _registered.get(id(tensor))
    return reference is not None and reference() is tensor


def loads_of_itself() -> list[dict[str, Any]]:
    """Calls of `load_state_dict` that gave a module what it had: `{"line": …, "writes": …}`.

    Such a state was kept by reference, and its weights were written so often since.
    """
    return [{"line": line, "writes": writes} for line, writes in _loads.items()]


def loads_of_the_same() -> list[dict[str, Any]]:
    """Modules that were given their own state again and again: `{"line": …, "times": …}`.

    The state was taken from the module for the call, and the weights have never changed between
    two of them: a target network that copies itself.
    """
    return [
        {"line": facts["line"], "times": facts["times"]}
        for _, facts in _again.values()
        if facts["same"]
    ]


def loads_unmatched(models: Iterable[nn.Module]) -> list[dict[str, Any]]:
    """Loads into these models, or into a part of one, in which no name fitted.

    Of each: its line, the names that were given and wanted, one of each, and how many would fit
    without the beginning that the given ones, or those of the module, have before them.
    """
    owned = {id(parameter) for model in models for parameter in model.parameters()}
    found = []
    for reference, facts in _unmatched.values():
        module = reference()
        if module is not None and any(id(one) in owned for one in module.parameters()):
            found.append(dict(facts))
    return found


def _is_loaded(tensor: torch.Tensor) -> bool:
    reference = _loaded.get(id(tensor))
    return reference is not None and reference() is tensor


class _OnMaking(Hook):
    __slots__ = ("_noted",)

    def __init__(
        self, owner: Owner, address: str, noted: dict[int, tuple[weakref.ref[Any], str]]
    ) -> None:
        super().__init__(owner, address)
        self._noted = noted

    def __call__(self, function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        """An optimizer or a scheduler is made."""
        result = function(*args, **kwargs)
        if self.owner.alive and args:
            try:
                line = line_of_script()
                said = str(line) if line.line else ""
                self._noted[id(args[0])] = weakref.ref(args[0]), said
            except Exception:  # an optimizer that takes no weak reference is found as it steps
                return result
        return result


class _OnLoading(Hook):
    __slots__ = ()

    def __call__(self, function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        """Weights are loaded."""
        result = function(*args, **kwargs)
        if self.owner.alive:
            try:
                with quiet():
                    _note_loaded(*args, **kwargs)
                    note_load(_loaded_by(*args, **kwargs), _line)
                    _note_load_of_itself(*args, **kwargs)
                    _note_unmatched(args[0], result)
            except Exception:  # a module of a kind of its own
                return result
        return result


def _loaded_by(module: nn.Module, state_dict: Any = None, *_: Any, **__: Any) -> list[nn.Parameter]:
    named = module.named_parameters(remove_duplicate=False)
    return [parameter for name, parameter in named if name in state_dict]


def _note_loaded(*args: Any, **kwargs: Any) -> None:
    for parameter in _loaded_by(*args, **kwargs):
        if len(_loaded) < _MOST:
            _loaded[id(parameter)] = weakref.ref(parameter)


class _OnRegistering(Hook):
    __slots__ = ()

    def __call__(self, module: nn.Module, name: str, parameter: nn.Parameter | None) -> None:
        """A module gets a parameter."""
        if not self.owner.alive or parameter is None:
            return
        if len(_registered) >= _MOST:  # a layer may be made in every step
            gone = [key for key, reference in _registered.items() if reference() is None]
            for key in gone:
                del _registered[key]
        if len(_registered) < _MOST:
            _registered[id(parameter)] = weakref.ref(parameter)


class _OnState(Hook):
    __slots__ = ()

    def __call__(self, function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        """A state is asked for; each module of a model asks its children with a `destination`."""
        result = function(*args, **kwargs)
        if self.owner.alive and len(args) == 1 and "destination" not in kwargs:
            try:
                with quiet():
                    _note_state(args[0], result)
            except Exception:  # a state of a kind of its own
                return result
        return result


def _note_state(module: nn.Module, state: Any) -> None:
    first = next(module.parameters(), None)
    if first is None or first.is_inference():
        return
    if len(_states) >= _MOST_STATES:
        for key in [key for key, (reference, _) in _states.items() if reference() is None]:
            del _states[key]
    if len(_states) < _MOST_STATES:
        _states[id(state)] = weakref.ref(state), version_of(first)


def _note_load_of_itself(module: nn.Module, state_dict: Any = None, *_: Any, **__: Any) -> None:
    reference, version = _states.get(id(state_dict), (None, 0))
    known = reference is not None and reference() is state_dict
    first = next(module.parameters(), None)
    if not known or first is None or first.is_inference():
        return
    writes = version_of(first) - version - 1  # the load itself is one
    own = dict([*module.named_parameters(), *module.named_buffers()])
    given: dict[str, Any] = {name: state_dict.get(name) for name in own}
    if not all(_is_same(given[name], mine) for name, mine in own.items()):
        return
    if writes == 0:
        _note_again(module, first)
    elif writes > _WRITES:
        _loads[_line()] = writes


def _note_again(module: nn.Module, first: torch.Tensor) -> None:
    """A module was given the state that it has, taken for the call."""
    mark = float(first.detach().double().sum())
    reference, facts = _again.get(id(module), (None, {}))
    if reference is None or reference() is not module:
        if len(_again) < _MOST_STATES:
            _again[id(module)] = (
                weakref.ref(module), {"line": _line(), "times": 1, "same": True, "mark": mark}
            )  # fmt: skip
        return
    facts["times"] += 1
    # Weights that something else has changed since are in no need of the call.
    facts["same"] = facts["same"] and facts["mark"] == mark


def _note_unmatched(module: nn.Module, result: Any) -> None:
    """A state was loaded; of which not one name is a parameter's."""
    _unmatched.pop(id(module), None)  # what another load has filled since is filled
    given = [str(name) for name in getattr(result, "unexpected_keys", ())]
    missing = {str(name) for name in getattr(result, "missing_keys", ())}
    own = [name for name, _ in module.named_parameters()]
    if not own or not given or not missing.issuperset(own) or len(_unmatched) >= _MOST_STATES:
        return
    wanted = set(own)
    ends = {end for name in given for end in _ends(name)} & wanted
    longer = {name for name in own if not set(given).isdisjoint(_ends(name))}
    _unmatched[id(module)] = weakref.ref(module), {
        "line": _line(), "given": len(given), "wanted": len(own), "fits": len(ends | longer),
        "one_given": given[0], "one_wanted": own[0],
    }  # fmt: skip


def _ends(name: str) -> list[str]:
    """A name without its first parts: `conv.weight` of `module.conv.weight`."""
    parts = name.split(".")
    return [".".join(parts[start:]) for start in range(1, len(parts) - 1)]


def _line() -> str:
    line = line_of_script()
    return str(line) if line.line else ""


def _is_same(given: Any, mine: torch.Tensor) -> bool:
    """Whether two tensors are one place in memory; what is not kept in a state is no matter."""
    if given is None:
        return True
    return isinstance(given, torch.Tensor) and given.data_ptr() == mine.data_ptr()
