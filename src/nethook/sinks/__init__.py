"""Numbers of a run in your experiment tracker, while it trains.

    nethook.watch(model, optimizer, sinks=["wandb"])             # few names, findings as alerts
    nethook.watch(model, optimizer, sinks=["tensorboard:all"])   # every layer, and histograms
    nethook.watch(model, optimizer, sinks=[nethook.sinks.sink("mlflow", experiment="mnist")])

`nethook run --to-tracker wandb train.py` does it without a change to the script. A tracker of your
own is a subclass of `Sink`. `docs/trackers.md` shows one example for each tracker.
"""

from nethook.sinks.known import TRACKERS as TRACKERS
from nethook.sinks.known import sink as sink
from nethook.sinks.sink import RunFacts as RunFacts
from nethook.sinks.sink import Sink as Sink

__all__ = ["TRACKERS", "RunFacts", "Sink", "sink"]
