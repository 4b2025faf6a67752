"""Figures of runs and tapes: Plotly objects, the same in a notebook, a report and the page.

    run = nethook.open_run("runs/mnist.db")
    nethook.figures.overview(run)                       # loss, learning rate, gradients, findings
    nethook.figures.heatmap(run, "gradients")           # every layer, every step
    nethook.figures.histogram(run, "conv1")             # how its values are spread, over time
    nethook.figures.feature_maps(tape, "conv1")         # channels as pictures
    nethook.figures.show(run)                           # in a notebook: the verdict and the curves
    nethook.figures.save(figure, "loss.svg")            # .png, .svg, .pdf, .html, .json

They need plotly: pip install 'nethook[ui]'. Wherever a run is taken, its path is, too. `theme` is
`light` or `dark`.
"""

from nethook.drawing.quantities import QUANTITIES as QUANTITIES
from nethook.drawing.rendering.saving import save as save
from nethook.figures.reports import report as report
from nethook.figures.reports import show as show
from nethook.figures.runs import bands as bands
from nethook.figures.runs import compare as compare
from nethook.figures.runs import depth as depth
from nethook.figures.runs import finding as finding
from nethook.figures.runs import heatmap as heatmap
from nethook.figures.runs import histogram as histogram
from nethook.figures.runs import overview as overview
from nethook.figures.runs import parting as parting
from nethook.figures.runs import tree as tree
from nethook.figures.runs import units as units
from nethook.figures.tensors import activations as activations
from nethook.figures.tensors import attention as attention
from nethook.figures.tensors import feature_maps as feature_maps
from nethook.figures.tensors import filters as filters
from nethook.figures.tensors import snapshots as snapshots

__all__ = [
    "QUANTITIES",
    "activations",
    "attention",
    "bands",
    "compare",
    "depth",
    "feature_maps",
    "filters",
    "finding",
    "heatmap",
    "histogram",
    "overview",
    "parting",
    "report",
    "save",
    "show",
    "snapshots",
    "tree",
    "units",
]


def __dir__() -> list[str]:
    """What is for users; the files of this room are not."""
    return __all__
