"""Everything that running a model could change, written down without any help of nethook's."""

from __future__ import annotations

import dataclasses
import random
from typing import Any

import numpy as np
import torch
from torch import nn
from torch.nn.modules import module as torch_module
from torch.nn.parameter import UninitializedTensorMixin

from nethook.torch_private import first_element
from tests.zoo.compare import TensorFacts, differences, snapshot


class Fingerprint:
    """Facts about a model, its inputs and the process.

    Values, versions, flags, strides, hooks, attributes and who shares memory with whom are the
    zoo's snapshot; added are who is who, where memory lies, and the state of the process.
    """

    def __init__(self, model: nn.Module, inputs: Any = None) -> None:
        self.facts: dict[str, Any] = snapshot({"inputs": inputs, "model": model})
        self._alive: list[Any] = []  # an id is somebody's as long as they live
        for number, module in enumerate(_modules(model)):
            self._same(f"module {number}", module)
            for name, value in vars(module).items():
                if not isinstance(value, bool | int | float | complex | str):
                    self._same(f"module {number}.{name}", value)
            for kind in ("_parameters", "_buffers", "_modules"):
                held = vars(module).get(kind)
                for name, value in held.items() if isinstance(held, dict) else ():
                    self._same(f"module {number}.{kind}[{name!r}]", value)
        for number, tensor in enumerate(model.parameters()):
            self._tensor(f"weight {number}", tensor)
        for number, tensor in enumerate(model.buffers()):
            self._tensor(f"buffer {number}", tensor)
        self.facts |= _process()

    def changes(self, later: Fingerprint, *, weights: bool = True) -> list[str]:
        """What differs; without the values of weights, where they may be written."""
        if weights:
            return differences(self.facts, later.facts)
        return differences(_without_weights(self.facts), _without_weights(later.facts))

    def _same(self, path: str, value: Any) -> None:
        self._alive.append(value)
        self.facts[f"{path}: who"] = id(value)

    def _tensor(self, path: str, tensor: torch.Tensor) -> None:
        if isinstance(tensor, UninitializedTensorMixin):
            return
        if tensor.is_leaf:
            self._same(f"{path}.grad", tensor.grad)
        plain = type(tensor) in (torch.Tensor, nn.Parameter, nn.Buffer)
        if plain and tensor.layout is torch.strided and not tensor.is_nested:
            self.facts[f"{path}: where"] = first_element(tensor)


def _modules(model: nn.Module) -> list[nn.Module]:
    seen: dict[int, nn.Module] = {}
    for _, module in model.named_modules(remove_duplicate=False):
        seen.setdefault(id(module), module)
    return list(seen.values())


def _process() -> dict[str, Any]:
    return {
        "torch's numbers": torch.get_rng_state().numpy().tobytes(),
        "python's numbers": random.getstate(),
        "numpy's numbers": [
            each.tobytes() if isinstance(each, np.ndarray) else each
            for each in np.random.get_state(legacy=True)
        ],
        "gradients are on": torch.is_grad_enabled(),
        "inference mode": torch.is_inference_mode_enabled(),
        "default type": torch.get_default_dtype(),
        "default device": torch.get_default_device(),
        "autocast": torch.is_autocast_enabled("cpu"),
        "fused kernels": torch.backends.mha.get_fastpath_enabled(),
        "modes": (torch._C._len_torch_function_stack(), torch._C._len_torch_dispatch_stack()),
        "global hooks": {
            name: len(table)
            for name, table in vars(torch_module).items()
            if name.startswith("_global_") and name.endswith("hooks") and table is not None
        },
    }


def _without_weights(facts: dict[str, Any]) -> dict[str, Any]:
    kept = {}
    for path, fact in facts.items():
        if "_parameters[" in path and isinstance(fact, TensorFacts) and ".grad" not in path:
            fact = dataclasses.replace(fact, bits="any", version=None)
        if not (path.startswith("weight ") and path.endswith(": where")):
            kept[path] = fact
    return kept
