"""The loader reaches every sample: its sampler can draw each of the data set.

Experiment: none is needed. A `WeightedRandomSampler` draws numbers from 0 up to that of its
weights, and the data set says how many samples it has.

Meaning: the sampler was given one weight per class instead of one per sample, so that a handful of
samples are drawn again and again. Of a sampler that goes through the data in order, what it could
reach is noted, for a rule that knows which batches were used.

Cost: nothing.

Does not apply: to other samplers. A subset, or weights of zero, are chosen on purpose; to have
fewer weights than samples is not, as nothing else than their order says which samples are left.
"""

from __future__ import annotations

from nethook.examining.experiment import Result, fine, found
from nethook.examining.rehearsal import Rehearsal


class LoaderReachesAll:
    """See the module."""

    name = "the loader reaches every sample"
    turn = 0

    def applies(self, rehearsal: Rehearsal) -> str | None:
        """None, or why not."""
        loader = rehearsal.history.loader
        if loader is None or loader.samples is None:
            return "the batch comes from no loader whose samples are known"
        if loader.within_reach is None and loader.shuffled is not False:
            return "the loader draws its samples at random, without weights"
        return None

    def run(self, rehearsal: Rehearsal) -> Result:
        """Compares the two numbers."""
        loader = rehearsal.history.loader
        assert loader is not None
        reach, samples = loader.within_reach, loader.samples or 0
        if reach is not None and reach < samples:
            return found(self, within_reach=reach, samples=samples)
        return fine(self, samples=samples, in_order=loader.shuffled is False)
