"""`erase`: LEACE, the least change after which no linear probe finds a concept.

Belrose et al. 2023: r(x) = x - W⁺ P W (x - mean), where W whitens x and P projects onto the columns
of W Σ_xz. No linear predictor of z from r(x) is then better than a constant.
"""

from __future__ import annotations

from typing import Any

import torch

from nethook.editing.catalogue import erase as erase_edit
from nethook.errors import OptionError
from nethook.interp.directions.moments import moments
from nethook.interp.directions.samples import Samples, classes_of, sites_of
from nethook.interp.sweeping.ranks import Ranks

_RELATIVE = 1e-10  # below which a variance, relative to the largest, is taken for zero


def erase(X: Any, labels: Any, *, spread: bool = False) -> erase_edit:  # noqa: N803
    """An edit that removes what features say linearly of a concept, and changes them least (LEACE).

        gone = interp.erase(stored.tensor("layer3"), labels)
        with nethook.edit(model, outputs={"layer3": gone}): ...
        nethook.edits.save("gone.json", outputs={"layer3": gone})

    Arguments:
        X: features, (samples, features); a tensor, or `nethook.load_features(...)` of one site.
        labels: one per row: classes (whole numbers, texts), or numbers to forget, (samples,) or
            (samples, targets).
        spread: over the ranks of torchrun: to be called on each, and each gets the result.

    Returns:
        `nethook.edits.erase(left, right, mean)`, which acts on the last dimension of a value.

    Cost: two passes over the features in chunks, and a decomposition of (features × features).
    """
    values = sites_of(X)
    if isinstance(values, dict):
        raise OptionError(
            f"`X` must be the features of one site; got {len(values)} sites. Erase each by itself."
        )
    samples = Samples(values, Ranks(spread=spread))
    concept, names = classes_of(labels, samples.count)
    targets = torch.nn.functional.one_hot(concept).double() if names else concept
    targets = targets[:, None] if targets.ndim == 1 else targets
    (sums,) = moments(samples, targets, torch.zeros(samples.count, dtype=torch.long), 1)
    sizes, vectors = torch.linalg.eigh(sums.covariance)
    kept = sizes > _RELATIVE * float(sizes.max())
    if not bool(kept.any()):
        raise OptionError("`X` must vary; got the same features in every row.")
    root = sizes[kept].sqrt()
    vectors = vectors[:, kept]
    whitened = (vectors.T @ sums.cross_covariance) / root[:, None]  # W Σ_xz in this basis
    left, strength, _ = torch.linalg.svd(whitened, full_matrices=False)
    scale = targets.std(0, correction=0).norm()
    there = strength > 1e-12 * float(scale)
    basis = left[:, there]
    return erase_edit(
        left=vectors @ (root[:, None] * basis),
        right=(vectors @ (basis / root[:, None])).T.contiguous(),
        mean=sums.mean,
    )
