"""Where optimizers and weights come from: the line of a constructor, and what was loaded.

While it is on, every optimizer and scheduler is noted when it is made, so that nobody has to look
for it among all objects, and every parameter that `load_state_dict` fills. The lists are of the
process, as the functions are that are wrapped; they hold nothing alive.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import Any, Final

import torch
from torch import nn
from torch.optim import Optimizer, lr_scheduler

from nethook.hooks.attachment import Attachment
from nethook.hooks.hook import Hook, Owner
from nethook.hooks.process.source_line import line_of_script
from nethook.hooks.wrapped import WrappedFunction
from nethook.torch_private import version_of

_optimizers: Final[dict[int, tuple[weakref.ref[Optimizer], str]]] = {}
_schedulers: Final[dict[int, tuple[weakref.ref[Any], str]]] = {}
_loaded: Final[dict[int, weakref.ref[torch.Tensor]]] = {}
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
_WRITES: Final = 8
"""Writes to a weight that its constructor and an initialisation may make; a training makes more."""


def note_origins(hooks: Attachment) -> None:
    """Notes what is made and loaded, until the hooks are removed."""
    for kind in _KINDS:
        noted = _optimizers if kind is Optimizer else _schedulers
        making = _OnMaking(hooks.owner, kind.__name__, noted)
        hooks.add(WrappedFunction(kind, "__init__", making))
    hooks.add(WrappedFunction(nn.Module, "load_state_dict", _OnLoading(hooks.owner, "Module")))


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
                _note_loaded(*args, **kwargs)
            except Exception:  # a module of a kind of its own
                return result
        return result


def _note_loaded(module: nn.Module, state_dict: Any = None, *_: Any, **__: Any) -> None:
    for name, parameter in module.named_parameters(remove_duplicate=False):
        if name in state_dict and len(_loaded) < _MOST:
            _loaded[id(parameter)] = weakref.ref(parameter)
