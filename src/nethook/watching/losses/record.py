"""The record of one loss as plain data: what `docs/run-file.md` lists under `losses`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from nethook.addresses.paths import show_path
from nethook.watching.losses.graph import (
    Node,
    Step,
    Term,
    find_output,
    name_of,
    straight_behind,
    terms_of,
)
from nethook.watching.losses.kinds import FLOORED, LOG_PROBABILITIES, Made, Operands, made_of
from nethook.watching.losses.samples import Counting, counting_of

_SHOWN_TERMS = 8
_SHOWN_NODES = 24


@dataclass(frozen=True)
class Analysis:
    """How a loss was made: the record without its numbers, and how to find its nodes again."""

    root: type
    steps: tuple[tuple[Step, ...], ...]  # of each term that is looked at again, the main one first
    main: Term
    made: Made
    data: dict[str, Any]
    counting: Counting
    terms: tuple[tuple[Term, Made], ...] = ()


def analyse(root: Node, *, scaled: bool = False) -> Analysis:
    """Look at the whole graph between a loss and the outputs of the watched models.

    Arguments:
        root: the node of the loss.
        scaled: whether the first factor is that of a loss scaler.
    """
    terms = terms_of(root, scaled=scaled)
    for term in terms:
        find_output(term)
    terms, smoothing = _without_smoothing(terms)
    made = [made_of(term) for term in terms]
    index = _main(terms, made)
    main, kind = terms[index], made[index]
    if smoothing:
        kind.options["label_smoothing"] = smoothing
    data = _plain(main, kind) | {
        "terms": _terms(terms, made),
        "penalties": sum(other.kind == "penalty" for other in made),
        "options": dict(kind.options),
    }
    order = [index, *(other for other in range(len(terms)) if other != index)][:4]
    steps = tuple(_steps(terms[position]) for position in order)
    counting = counting_of(main, kind.reduction, smoothing)
    pairs = tuple(zip(terms, made, strict=True))
    return Analysis(type(root), steps, main, kind, data, counting, pairs)


def _terms(terms: list[Term], made: list[Made]) -> list[dict[str, Any]]:
    """The summands, where there is more than one."""
    if len(terms) == 1:
        return []
    both = zip(terms[:_SHOWN_TERMS], made, strict=False)
    return [_plain(term, kind) for term, kind in both]


def _steps(term: Term) -> tuple[Step, ...]:
    return (*term.steps, *term.behind_steps)[:16]


def _main(terms: list[Term], made: list[Made]) -> int:
    """Which of the terms is the loss: a known kind that a model's output goes into, if there is."""

    def rank(index: int) -> tuple[bool, bool, bool]:
        return (
            terms[index].mark is None,
            made[index].kind not in FLOORED,
            made[index].kind in {"penalty", "other"},
        )

    return min(range(len(terms)), key=rank)


def _without_smoothing(terms: list[Term]) -> tuple[list[Term], float | None]:
    """Label smoothing is a second term of torch's cross entropy, behind the same LogSoftmax."""
    for term in terms:
        if name_of(term.node) not in {"NllLoss", "NllLoss2D"}:
            continue
        into = term.node.next_functions[0][0]
        others = [other for other in terms if other.node is into and name_of(into) == "LogSoftmax"]
        if others and term.factors and term.factors[-1].by is not None:
            smoothing = round(1.0 - term.factors[-1].by, 9)
            term.factors = term.factors[:-1]
            return [other for other in terms if other not in others], smoothing
    return terms, None


def _plain(term: Term, made: Made) -> dict[str, Any]:
    """One term, as in the record of a loss and in the list of its terms."""
    factor = term.factor
    chain = [term.node, *term.behind]
    inside = list(term.inside)
    data: dict[str, Any] = {"kind": made.kind}
    if term.mark is None:
        chain += straight_behind(term.node)
    else:
        data |= {"model": term.mark.model, "path": show_path(term.mark.path)}
    return data | {
        "chain": [name_of(node) for node in chain][:_SHOWN_NODES],
        "outside": [name_of(node) for node in term.passed][:_SHOWN_NODES],
        "inside": inside,
        "by_hand": made.by_hand,
        "reduction": made.reduction,
        "factor": factor,
        "divided_by": 1.0 / abs(factor) if factor is not None and 0 < abs(factor) < 1 else None,
        "negated": factor is not None and factor < 0,
        "floored": made.kind in FLOORED,
    }


def shapes(operands: Operands) -> dict[str, Any]:
    """Shapes and types of what went in, and whether two shapes were broadcast to a third."""
    data: dict[str, Any] = {}
    for name in ("prediction", "target"):
        tensor, shape = getattr(operands, name), getattr(operands, f"{name}_shape")
        if shape is not None:
            data[name] = {"shape": list(shape)}
            if tensor is not None:
                data[name]["dtype"] = str(tensor.dtype).removeprefix("torch.")
    if operands.prediction is not None:
        data["prediction"]["space"] = operands.space
    prediction, target, result = (
        operands.prediction_shape,
        operands.target_shape,
        operands.result_shape,
    )
    data["broadcast"] = False
    # Classes and scores of classes have different shapes, and nothing is expanded; nor are the
    # sequences of a CTC loss, which may be written one behind the other.
    elementwise = operands.classes is None and operands.space != LOG_PROBABILITIES
    if result is not None and elementwise:
        there = [shape for shape in (prediction, target) if shape is not None]
        if any(shape != result for shape in there):
            data["broadcast"] = True
            data["broadcast_to"] = list(result)
    return data
