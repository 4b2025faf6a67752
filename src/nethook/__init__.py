"""Look inside any PyTorch network without changing it.

    import nethook

    with nethook.trace(model, "conv*", "fc?", grads=True) as tape:
        loss_fn(model(x), y).backward()
    print(tape)
    tape["fc1"].output, tape["fc1"].grad

The names below are all that is public. Each is loaded when it is first used, so that `import
nethook` and `nethook --help` import neither torch nor numpy: a script that sets `OMP_NUM_THREADS`
before its own `import torch` must find it obeyed.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:  # the same names once more, for type checkers and editors
    from nethook import errors as errors
    from nethook.addresses.inputs import Inputs as Inputs
    from nethook.addresses.inputs import inputs as inputs
    from nethook.addresses.lookup import get_module as get_module
    from nethook.addresses.lookup import get_parameter as get_parameter
    from nethook.addresses.select import select as select
    from nethook.hooks.audit import audit as audit
    from nethook.hooks.suspend import suspended as suspended
    from nethook.runs.run import open_run as open_run
    from nethook.tracing.scope import trace as trace

    __version__: str

__all__ = [
    "Inputs",
    "audit",
    "errors",
    "get_module",
    "get_parameter",
    "inputs",
    "open_run",
    "select",
    "suspended",
    "trace",
]

# Public name -> the module that holds it. `errors` and `__version__` are made by hand below.
_SOURCES: Final = {
    "Inputs": "nethook.addresses.inputs",
    "audit": "nethook.hooks.audit",
    "get_module": "nethook.addresses.lookup",
    "get_parameter": "nethook.addresses.lookup",
    "inputs": "nethook.addresses.inputs",
    "open_run": "nethook.runs.run",
    "select": "nethook.addresses.select",
    "suspended": "nethook.hooks.suspend",
    "trace": "nethook.tracing.scope",
}


def _load(name: str) -> object:
    """Load a public name on its first use."""
    value: object
    if name in _SOURCES:
        value = getattr(importlib.import_module(_SOURCES[name]), name)
    elif name == "errors":
        value = importlib.import_module("nethook.errors")
    elif name == "__version__":
        # The installed metadata is the one place that knows; reading it takes milliseconds.
        from importlib.metadata import version

        value = version("nethook")
    else:
        raise AttributeError(_no_such_name(name), name=name)
    globals()[name] = value  # found directly from now on
    return value


if not TYPE_CHECKING:  # a module with __getattr__ has every name, to a type checker
    __getattr__ = _load  # PEP 562


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__, "__version__"})


def _no_such_name(name: str) -> str:
    from difflib import get_close_matches

    # Case is no reason to miss a name: `nethook.Select` means `select`.
    spelling = {public.lower(): public for public in __all__}
    close = get_close_matches(name.lower(), spelling, n=1)
    hint = f" Did you mean `nethook.{spelling[close[0]]}`?" if close else ""
    return f"module 'nethook' has no attribute {name!r}.{hint}"
