"""What a test leaves switched on in the process: found, put back, reported with its name.

Global hooks, modes and wrapped torch functions outlive the test that put them on. A test that fails
half-way leaves its own behind (its frames stay alive in the traceback), and every test after it
would run under them.
"""

from __future__ import annotations

import sys
from typing import Any

HOOKS = {
    "torch.nn.modules.module": (
        "_global_forward_pre_hooks",
        "_global_forward_hooks",
        "_global_forward_hooks_always_called",
        "_global_forward_hooks_with_kwargs",
        "_global_backward_pre_hooks",
        "_global_backward_hooks",
        "_global_buffer_registration_hooks",
        "_global_module_registration_hooks",
        "_global_parameter_registration_hooks",
    ),
    "torch.optim.optimizer": ("_global_optimizer_pre_hooks", "_global_optimizer_post_hooks"),
}


class Before:
    """The global state before a test; `put_back` returns to it and names what was left on."""

    def __init__(self) -> None:
        self._hooks = [(name, hooks, set(hooks)) for name, hooks in _hook_dicts()]
        self._wrapped = list(_wrapped())
        self._asking = _asking()
        self._finders = list(sys.meta_path)
        self._modes = _modes()
        self._settings = _settings()

    def put_back(self) -> list[str]:
        """Switches off what was not on before; one line for each thing."""
        left = []
        # Handles first: they take their own hooks off, and put functions back in order.
        for handle in [each for each in _wrapped() if each not in self._wrapped]:
            left.append(f"a wrapper around {handle.function}: {handle.wrapper!r}")
            handle.remove()
        for name, hooks, before in self._hooks:
            for key in [key for key in list(hooks) if key not in before]:
                left.append(f"a hook in {name}: {hooks.pop(key)!r}")
        # A watch that is never ended may ask; what still holds it, a traceback, lives for a while.
        for who in _asking():
            if not any(who is before for before in self._asking):
                _shown().leave(who)
        left += self._modes_put_back()
        _forget_default_device()
        for finder in [each for each in sys.meta_path if each not in self._finders]:
            if type(finder).__module__.startswith("nethook"):
                left.append(f"a finder on sys.meta_path: {finder!r}")
                sys.meta_path.remove(finder)
        for name, now in _settings().items():
            before = self._settings.get(name, _DEFAULTS[name])
            if now != before:
                left.append(f"{name}: {now!r} (was {before!r})")
                _set(name, before)
        return left

    def _modes_put_back(self) -> list[str]:
        if "torch" not in sys.modules:
            return []
        from torch.overrides import _len_torch_function_stack, _pop_mode
        from torch.utils._python_dispatch import TorchDispatchMode, _get_current_dispatch_mode

        functions, dispatches = self._modes
        left = []
        while _len_torch_function_stack() > functions:
            left.append(f"a TorchFunctionMode: {_pop_mode()!r}")
        while _modes()[1] > dispatches:
            mode = _get_current_dispatch_mode()
            left.append(f"a TorchDispatchMode: {mode!r}")
            # Not popped alone: torch keeps besides that one is on, and compiles nothing meanwhile.
            TorchDispatchMode.__exit__(mode, None, None, None)
        return left


def _forget_default_device() -> None:
    """After `torch.set_default_device(None)` torch 2.8 cannot be asked for its default device."""
    kept = getattr(sys.modules.get("torch"), "_GLOBAL_DEVICE_CONTEXT", None)
    if kept is not None and getattr(kept, "device_context", kept) is None:
        del kept.device_context


def _hook_dicts() -> list[tuple[str, Any]]:
    return [
        (f"{module}.{name}", getattr(sys.modules[module], name))
        for module, names in HOOKS.items()
        if module in sys.modules
        for name in names
    ]


def _wrapped() -> list[Any]:
    functions = sys.modules.get("nethook.hooks.wrapped")
    return list(functions._ON) if functions is not None else []


def _shown() -> Any:
    """What says whether compiled graphs show what is inside; None where no graph was made."""
    return getattr(sys.modules.get("nethook.hooks.compile.graph"), "shown", None)


def _asking() -> list[Any]:
    return list(_shown()._asking) if _shown() is not None else []


def _modes() -> tuple[int, int]:
    if "torch" not in sys.modules:
        return 0, 0
    import torch

    return torch._C._len_torch_function_stack(), torch._C._len_torch_dispatch_stack()


_DEFAULTS = {
    "gradients": True,
    "default dtype": None,
    "deterministic algorithms": False,
    "anomaly detection": False,
    "autocast on the CPU": False,
    "NNPACK": True,
    "oneDNN": True,
    "stance of torch.compile": "default",
}


def _settings() -> dict[str, Any]:
    if "torch" not in sys.modules:
        return {}
    import torch

    _DEFAULTS["default dtype"] = torch.float32
    found = {
        "gradients": torch.is_grad_enabled(),
        "default dtype": torch.get_default_dtype(),
        "deterministic algorithms": torch.are_deterministic_algorithms_enabled(),
        "anomaly detection": torch.is_anomaly_enabled(),
        "autocast on the CPU": torch.is_autocast_enabled("cpu"),
        "NNPACK": torch._C._get_nnpack_enabled(),
        "oneDNN": torch._C._get_mkldnn_enabled(),
    }
    frames = sys.modules.get("torch._dynamo.eval_frame")
    if frames is not None:
        found["stance of torch.compile"] = frames._stance.stance
    return found


def _set(name: str, value: Any) -> None:
    import torch

    setters = {
        "gradients": torch.set_grad_enabled,
        "default dtype": torch.set_default_dtype,
        "deterministic algorithms": torch.use_deterministic_algorithms,
        "anomaly detection": torch.autograd.set_detect_anomaly,
        "autocast on the CPU": lambda on: torch.set_autocast_enabled("cpu", on),
        "NNPACK": torch._C._set_nnpack_enabled,
        "oneDNN": torch._C._set_mkldnn_enabled,
        "stance of torch.compile": torch.compiler.set_stance,
    }
    setters[name](value)
