"""`saliency` and `input_x_gradient`: one gradient."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import nn

from nethook.addresses.patterns import Pattern
from nethook.extracting.progress import Bar
from nethook.interp.attributions.batches import gradients_of_variants, rows_per_run, runs_of
from nethook.interp.attributions.subject import Subject, check_gradient, subject
from nethook.interp.attributions.targets import Given
from nethook.interp.results.attribution import Attribution


def saliency(
    model: nn.Module, x: object, target: Given = None, at: Pattern | None = None, *,
    progress: bool | None = None,
) -> Attribution:  # fmt: skip
    """The gradient of a target with respect to the input, or to the value at a site.

        a = interp.saliency(model, images, target=3);  a.values, a.figure()

    It says to which elements the target is sensitive here, and not what they add to it. Values are
    signed.

    Arguments:
        model: any `nn.Module`. It runs in evaluation mode; everything is left as it was.
        x: inputs with rows first: a tensor, a tuple, a mapping, or `nethook.inputs(...)`. The
            first tensor of floats is studied.
        target: what is explained: a class, a list of one class per row, "top" (the class with the
            largest score), an index of several dimensions as a tuple, or a function of the output
            that gives one number per row. A function is called with all rows, in their order.
            None is the one number of a regression.
        at: a module or operation whose output is studied in the place of the input, such as the
            embedding of token ids.
        progress: whether to show a progress bar; None: on a terminal and in a notebook.

    Returns:
        An `Attribution`. Cost: a forward and a backward.
    """
    with subject(model, x, target, at, graph=True) as study:
        return study.result("saliency", gradient(study, progress))


def input_x_gradient(
    model: nn.Module, x: object, target: Given = None, at: Pattern | None = None, *,
    progress: bool | None = None,
) -> Attribution:  # fmt: skip
    """The input times the gradient: the first-order effect of setting each element to zero.

        a = interp.input_x_gradient(model, images, target=3);  a.values, a.delta

    The values add up to the score where the model is linear without bias, or a network of ReLUs
    without bias; `delta` says how far they are from `score` elsewhere. Arguments are those of
    `interp.saliency`.
    """
    with subject(model, x, target, at, graph=True) as study:
        values = study.value * gradient(study, progress)
        score = study.score
        delta = values.double().flatten(1).sum(1).cpu() - score.double().cpu()
        return study.result("input × gradient", values, delta=delta)


def gradient(study: Subject, progress: bool | None, label: str = "gradients") -> torch.Tensor:
    """The gradient of every row."""
    if study.graph is not None:
        leaf, scores = study.graph
        study.graph = None
        check_gradient(scores)
        whole: Sequence[torch.Tensor | None] = torch.autograd.grad(
            scores.sum(), leaf, allow_unused=True
        )
        return torch.zeros_like(leaf) if whole[0] is None else whole[0]
    per_run = rows_per_run(study, study.rows)
    found = torch.empty_like(study.value)
    with Bar(runs_of(study.rows, per_run), 0, shown=progress, label=label, unit="rows") as bar:
        for run in gradients_of_variants(
            study, torch.arange(study.rows), 1, lambda which, _: study.value[which], per_run, bar
        ):
            found[run.which] = run.grads
    return found
