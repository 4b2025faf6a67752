"""The QK fix: what a change of queries or keys does through a softmax, computed and not linearised.

A saturated softmax has almost no gradient, so a linear estimate of what its scores do is almost
zero, whatever the truth is. Here the probabilities are computed anew, and only what comes behind
them is linear: effect = Σ (p_new − p_base) · dM/dp.
"""

from __future__ import annotations

from typing import Any

import torch

from nethook.interp.estimates.replay import Scores
from nethook.tracing.attention.recompute import of_sdpa

_TINY = 1e-300


class SoftmaxEffect:
    """One attention of the base run, with the gradient of its probabilities.

    `args` and `kwargs` are those of `F.scaled_dot_product_attention`; `grad` is dM/dz.
    """

    def __init__(self, arguments: dict[str, Any], grad: torch.Tensor) -> None:
        self._given = {
            name: value.double() if _is_float(value) else value for name, value in arguments.items()
        } | {"dropout_p": 0.0}
        value = self._per_query_head(self._given["value"])
        self.probs = self._probabilities()  # (B, H, Q, K)
        self.grad = grad.double() @ value.transpose(-2, -1)  # dM/dp, (B, H, Q, K)

    def _per_query_head(self, value: torch.Tensor) -> torch.Tensor:
        heads = int(self._given["query"].shape[1])
        return value.repeat_interleave(heads // value.shape[1], 1)

    def _probabilities(self, **new: torch.Tensor) -> torch.Tensor:
        return of_sdpa(**{**self._given, **new})

    def _shift(self, key: torch.Tensor) -> torch.Tensor:
        """What is added to each score by other keys: (B, H, Q, K)."""
        query, base = self._given["query"], self._per_query_head(self._given["key"])
        scale = self._given.get("scale")
        scale = query.shape[-1] ** -0.5 if scale is None else scale
        shift: torch.Tensor = query @ (self._per_query_head(key) - base).transpose(-2, -1) * scale
        return shift

    def of_queries(self, query: torch.Tensor) -> torch.Tensor:
        """The effect of each query, changed alone: (B, H, Q). Rows of a softmax are independent."""
        changed = self._probabilities(query=query.double())
        return ((changed - self.probs) * self.grad).sum(-1)

    def of_all_keys(self, key: torch.Tensor) -> torch.Tensor:
        """The effect of all keys, changed together: (B, H); of a query head's own keys."""
        changed = self._probabilities(key=key.double())
        return ((changed - self.probs) * self.grad).sum((-2, -1))

    def of_each_key(self, key: torch.Tensor) -> torch.Tensor:
        """The effect of each key, changed alone: (B, H, K).

        One score s of a row becomes s', so p' = p r / (1 − p + p r) with r = exp(s' − s), and the
        other probabilities shrink alike. O(queries · keys) for all keys together.
        """
        p, g = self.probs, self.grad
        shift = self._shift(key.double())  # s' − s
        rest = (1 - p).clamp(min=_TINY)
        new = torch.sigmoid(shift + torch.log(p.clamp(min=_TINY)) - torch.log(rest))
        new = torch.where(p == 0, torch.zeros_like(p), new)  # a masked key stays masked
        total = (p * g).sum(-1, keepdim=True)
        others = (total - p * g) / rest  # the mean gradient of all other keys
        changed = new * g + (1 - new) * others
        effect = torch.where(1 - p < _TINY, torch.zeros_like(p), changed - total)
        return effect.sum(-2)


class WrittenSoftmaxEffect(SoftmaxEffect):
    """The same for attention that is written out: what its model does to scores is done again."""

    def __init__(self, scores: Scores, grad: torch.Tensor) -> None:
        assert scores.value is not None
        self._scores = scores
        self._base = scores.again().double()
        self.probs = self._base.softmax(-1)
        self.grad = grad.double() @ scores.value.double().transpose(-2, -1)

    def _probabilities(self, **new: torch.Tensor) -> torch.Tensor:
        return self._scores.again(**new).double().softmax(-1)

    def _shift(self, key: torch.Tensor) -> torch.Tensor:
        shift = self._scores.again(key=key).double() - self._base
        return shift.nan_to_num(0.0)  # of a key that is masked by -inf


def _is_float(value: object) -> bool:
    return isinstance(value, torch.Tensor) and value.is_floating_point()
