"""The QK fix: what a change of queries or keys does through a softmax, computed and not linearised.

A saturated softmax has almost no gradient, so a linear estimate of what its scores do is almost
zero, whatever the truth is. Here the probabilities are computed anew, and only what comes behind
them is linear: effect = Σ (p_new − p_base) · dM/dp.
"""

from __future__ import annotations

from typing import Any

import torch

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
        self._heads = self._given["query"].shape[1]
        self.probs = of_sdpa(**self._without_value())  # (B, H, Q, K)
        self.grad = grad.double() @ value.transpose(-2, -1)  # dM/dp, (B, H, Q, K)

    def _per_query_head(self, value: torch.Tensor) -> torch.Tensor:
        heads = int(self._given["query"].shape[1])
        return value.repeat_interleave(heads // value.shape[1], 1)

    def _without_value(self, **new: torch.Tensor) -> dict[str, Any]:
        return self._given | new

    def of_queries(self, query: torch.Tensor) -> torch.Tensor:
        """The effect of each query, changed alone: (B, H, Q). Rows of a softmax are independent."""
        changed = of_sdpa(**self._without_value(query=query.double()))
        return ((changed - self.probs) * self.grad).sum(-1)

    def of_all_keys(self, key: torch.Tensor) -> torch.Tensor:
        """The effect of all keys, changed together: (B, H); of a query head's own keys."""
        changed = of_sdpa(**self._without_value(key=key.double()))
        return ((changed - self.probs) * self.grad).sum((-2, -1))

    def of_each_key(self, key: torch.Tensor) -> torch.Tensor:
        """The effect of each key, changed alone: (B, H, K).

        One score s of a row becomes s', so p' = p r / (1 − p + p r) with r = exp(s' − s), and the
        other probabilities shrink alike. O(queries · keys) for all keys together.
        """
        p, g = self.probs, self.grad
        query, base = self._given["query"], self._per_query_head(self._given["key"])
        scale = self._given.get("scale")
        scale = query.shape[-1] ** -0.5 if scale is None else scale
        moved = self._per_query_head(key.double()) - base
        shift = query @ moved.transpose(-2, -1) * scale  # s' − s
        rest = (1 - p).clamp(min=_TINY)
        new = torch.sigmoid(shift + torch.log(p.clamp(min=_TINY)) - torch.log(rest))
        new = torch.where(p == 0, torch.zeros_like(p), new)  # a masked key stays masked
        total = (p * g).sum(-1, keepdim=True)
        others = (total - p * g) / rest  # the mean gradient of all other keys
        changed = new * g + (1 - new) * others
        effect = torch.where(1 - p < _TINY, torch.zeros_like(p), changed - total)
        return effect.sum(-2)


def _is_float(value: object) -> bool:
    return isinstance(value, torch.Tensor) and value.is_floating_point()
