"""A softmax has a choice: it runs over more than one number.

Experiment: the shape of what every softmax of the step is given is read, and where it comes from.

Meaning: the scores of an attention are (batch, words, 1), and the softmax runs over the last axis:
every weight is 1, and the layer that makes the scores never learns. Or a network with one output
has a softmax at its end: its answer is always 1.

Cost: one pass of the step, which `axes_keep_their_meaning` shares.

Does not apply: where no softmax is called. Scores that do not come from a layer with one output are
left alone: an attention may have one word to look at, a mixture one part. A question: where no
other axis is left to choose along, as of a mixture of one expert.
"""

from __future__ import annotations

from nethook.examining.experiment import Result, fine, found, not_applicable, question
from nethook.examining.probes.calls import SOFTMAXES, Call, calls_of
from nethook.examining.rehearsal import Rehearsal


class SoftmaxHasAChoice:
    """See the module."""

    name = "a softmax has a choice"
    turn = 3

    def applies(self, rehearsal: Rehearsal) -> str | None:
        """None: whether there is a softmax is seen in a pass."""
        return None

    def run(self, rehearsal: Rehearsal) -> Result:
        """Every softmax."""
        calls = [call for call in calls_of(rehearsal) if call.name in SOFTMAXES]
        if not calls:
            return not_applicable(self, "no softmax is called")
        bad = [call for call in calls if _is_of_one(call)]
        if not bad:
            return fine(self, calls=len(calls))
        sure = [call for call in bad if len([size for size in call.given[1:] if size > 1]) > 0]
        first = (sure or bad)[0]
        facts = {
            "given": list(first.given),
            "dim": first.dim,
            "lines": [first.line] if first.line else [],
        }
        if sure:
            return found(self, **facts)
        return question(self, "there may be one thing only to choose from", **facts)


def _is_of_one(call: Call) -> bool:
    if call.dim is None or not call.given or not call.linear:
        return False
    return call.given[call.dim % len(call.given)] == 1
