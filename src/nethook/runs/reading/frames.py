"""Columns as a data frame of pandas or polars, when one of them is installed."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Mapping
from typing import Any, Final

from nethook.errors import OptionError

_LIBRARIES: Final = ("pandas", "polars")


def make_frame(columns: Mapping[str, Any], library: str | None = None) -> Any:
    """A frame of the named library; without a name, of the one in use, else of the one there is."""
    if library is not None and library not in _LIBRARIES:
        raise OptionError(f"`library` must be {' or '.join(_LIBRARIES)}; got {library!r}.")
    # What a notebook has imported already is what its author works with.
    wanted = [library] if library else sorted(_LIBRARIES, key=lambda name: name not in sys.modules)
    for name in wanted:
        try:
            module = importlib.import_module(name)
        except ImportError:
            continue
        return module.DataFrame(dict(columns))
    raise ImportError(
        f"a frame needs {library or 'pandas or polars'}, which is not installed: "
        f"pip install {library or 'pandas'}. Without it, .columns() gives numpy arrays."
    )
