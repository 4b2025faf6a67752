"""Trackers by name; each is imported when it is asked for."""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Sequence
from typing import Any, Final, NamedTuple, cast

from nethook.errors import MissingLibraryError, OptionError
from nethook.sinks.sink import DETAILS, Detail, Sink


class _Tracker(NamedTuple):
    module: str  # of nethook.sinks.trackers
    kind: str  # the class in it
    library: str  # that must be there
    package: str  # that brings it


TRACKERS: Final = {
    "wandb": _Tracker("wandb", "WandbSink", "wandb", "wandb"),
    "tensorboard": _Tracker("tensorboard", "TensorBoardSink", "tensorboard", "tensorboard"),
    "mlflow": _Tracker("mlflow", "MlflowSink", "mlflow", "mlflow"),
    "trackio": _Tracker("trackio", "TrackioSink", "trackio", "trackio"),
    "comet": _Tracker("comet", "CometSink", "comet_ml", "comet-ml"),
    "clearml": _Tracker("clearml", "ClearmlSink", "clearml", "clearml"),
    "swanlab": _Tracker("swanlab", "SwanlabSink", "swanlab", "swanlab"),
}
"""Name of a tracker -> what sends to it."""


def sink(name: str, *, detail: Detail = "few", **options: Any) -> Sink:
    """A sink by the name of its tracker.

        nethook.sinks.sink("wandb", detail="all", project="mnist")

    Arguments:
        name: one of `nethook.sinks.TRACKERS`.
        detail: `few` (the loop, blocks, the worst layers) or `all` (every series, histograms).
        options: of this tracker; `docs/trackers.md` lists them.

    Raises:
        OptionError: there is no such tracker.
        MissingLibraryError: it is not installed.
    """
    check_name(name)
    known = TRACKERS[name]
    made = importlib.import_module(f"nethook.sinks.trackers.{known.module}")
    return cast("Sink", getattr(made, known.kind)(detail=detail, **options))


def check_name(name: str) -> None:
    """Raises where a tracker is not known, or not installed; imports nothing."""
    if name not in TRACKERS:
        raise OptionError(f"`sinks` must be some of {', '.join(TRACKERS)}; got {name!r}.")
    known = TRACKERS[name]
    found = importlib.util.find_spec(known.library)
    if found is None or found.origin is None:  # a folder of this name is no library
        raise MissingLibraryError(
            f"the sink {name!r} needs {known.library}, which is not installed: "
            f"pip install {known.package}"
        )


def split_name(text: str) -> tuple[str, Detail]:
    """`wandb:all` as the name of a tracker and a detail."""
    name, _, detail = text.partition(":")
    if detail and detail not in DETAILS:
        raise OptionError(
            f"`sinks` must be names such as 'wandb' or 'wandb:all'; got {text!r}. "
            f"After the colon comes one of {', '.join(DETAILS)}."
        )
    return name, cast("Detail", detail or "few")


def chosen_sinks(given: Sequence[str | Sink] | str | Sink) -> list[Sink]:
    """The sinks that were asked for, by name or as they are."""
    several = [given] if isinstance(given, str | Sink) else list(given)
    sinks = []
    for each in several:
        if isinstance(each, Sink):
            sinks.append(each)
        elif isinstance(each, str):
            name, detail = split_name(each)
            sinks.append(sink(name, detail=detail))
        else:
            raise OptionError(
                f"`sinks` must be names of trackers or Sink objects; got {type(each).__name__}. "
                "A sink of your own is a subclass of nethook.sinks.Sink."
            )
    return sinks
