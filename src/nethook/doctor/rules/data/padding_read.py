"""The model reads padding: like words, or in their place.

Cause: an attention mask that is the wrong way round (True means "look here" in one function and
"leave out" in another), or an output that is read at the last position, where a short sequence has
only padding behind it. Or a forward that is given a mask and never uses it: padding then counts
like words, in a mean over all positions.
Evidence: on a copy, other words in all padded sequences leave the output as it is, with the weights
that it has and with others, and another padding moves it; and a loss that does not fall. Or a mask
that leaves nothing out gives the same output, and another padding does not; a note where the run
does its job, and where the sequences could not be made shorter. Or, as a question, less padding
behind short sequences moves the output.
Fix: use the mask; turn it around; read the output at the last word, by its length.
Silent: where words matter, however little, where padding does not, and where the loss falls.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

from nethook.doctor.finding import Evidence, Finding
from nethook.doctor.history import Examined, History
from nethook.doctor.rule import Cause, Rule
from nethook.doctor.signals.examined import first, lines, meant, number, since
from nethook.doctor.signals.progress import PROGRESS_READS, progress

EXAMINED: Final = "the words matter"
MASK: Final = "the mask matters"
FEWER: Final = "padding adds nothing"


class Thresholds(NamedTuple):
    """What may be changed."""

    steps: float = 20


def look(history: History, limit: Thresholds) -> Iterator[Finding]:
    """At most one finding."""
    result = first(history, EXAMINED)
    went = progress(history)
    unused = first(history, MASK)
    if unused is not None and history.steps >= limit.steps:
        yield _unmasked(unused, history)
        return
    if history.steps < limit.steps:
        return
    if result is None or went is None or went.improves:
        fewer = first(history, FEWER)
        if fewer is not None:
            yield _moved_by_less(fewer, history)
        return
    share, sequences = number(result, "share", 0.0), number(result, "sequences", 0.0)
    sure = result.outcome == "found"
    weights = " with the weights that it has and with others" if sure else ""
    yield Finding(
        "padding-read",
        "error" if sure else "warning",
        f"on a copy of the model, other words in {sequences:.0f} padded sequences leave its output "
        f"as it is{weights}, and other tokens in the place of their padding ({share:.0%} of the "
        "batch) move it: the output is made of the padding.",
        "Look at the attention mask: scaled_dot_product_attention takes True for what is seen, "
        "key_padding_mask True for what is not. If the last position is read, read that of the "
        "last word instead (output[range(n), lengths - 1], or pack_padded_sequence).",
        first_step=since(result),
        last_step=max(since(result), history.steps - 1),
        evidence={
            "change of the output with other words": Evidence(0.0),
            "share of padding": Evidence(share),
        },
        lines=lines(result),
    )


def _unmasked(result: Examined, history: History) -> Finding:
    """A mask that the forward does not use."""
    share, went = number(result, "share", 0.0), progress(history)
    asked = result.outcome == "question" or (went is not None and went.does_its_job)
    return Finding(
        "padding-read",
        "info" if asked else "warning",
        "the model is given a mask that says which tokens are padding, and on a copy its output is "
        "the same without it; other tokens in the place of the padding "
        f"({share:.0%} of the batch) do move it: padding counts like words.{meant(result)}",
        "Use the mask in the forward: (hidden * mask[..., None]).sum(1) / mask.sum(1, "
        "keepdim=True) instead of hidden.mean(1), key_padding_mask of an attention.",
        first_step=since(result),
        last_step=max(since(result), history.steps - 1),
        evidence={
            "change of the output without the mask": Evidence(0.0),
            "share of padding": Evidence(share),
        },
        lines=lines(result),
    )


def _moved_by_less(fewer: Examined, history: History) -> Finding:
    """Less padding behind short sequences changes the answers."""
    share, moved = number(fewer, "share", 0.0), number(fewer, "moved")
    return Finding(
        "padding-read",
        "info",
        f"on a copy of the model, less padding behind short sequences ({share:.0%} of the batch is "
        f"padding) moves its output by {moved:.2g} of its largest value: what it says of a "
        "sequence depends on the longest one in its batch. Is that meant?",
        "Read an RNN at the last word (pack_padded_sequence with the lengths, or output[range(n), "
        "lengths - 1]), give an attention its mask, and leave padding out of a mean.",
        first_step=since(fewer),
        last_step=max(since(fewer), history.steps - 1),
        evidence={
            "change of the output with less padding": Evidence(moved),
            "share of padding": Evidence(share),
        },
        lines=lines(fewer),
    )


RULE = Rule(
    "padding-read",
    Cause.DATA,
    look,
    reads=(
        *PROGRESS_READS,
        f"examined.{EXAMINED}",
        f"examined.{EXAMINED}.lines",
        f"examined.{EXAMINED}.sequences",
        f"examined.{EXAMINED}.share",
        f"examined.{MASK}",
        f"examined.{MASK}.lines",
        f"examined.{MASK}.share",
        f"examined.{FEWER}",
        f"examined.{FEWER}.lines",
        f"examined.{FEWER}.moved",
        f"examined.{FEWER}.share",
        "series.@loop.forwards.mean",
    ),
    defaults=Thresholds(),
)
