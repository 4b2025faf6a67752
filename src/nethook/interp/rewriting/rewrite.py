"""`rewrite`: a change of low rank after which a weight answers given keys with given values.

One fact: W + (v - W k)(C⁻¹ k)ᵀ / (kᵀ C⁻¹ k) (ROME). Several: the same with matrices, exactly, or
with `keep=λ` the least squares of R Kᵀ (λ C + K Kᵀ)⁻¹ (MEMIT). All in float64.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import nn

from nethook.addresses.tree import Tree
from nethook.editing.catalogue import add_low_rank
from nethook.editing.parameters import inputs_come_first
from nethook.errors import OptionError

_TINY = 1e-6  # of a denominator, beside what a key of this length has at least
_SINGULAR = 1e-12


def rewrite(
    W: torch.Tensor | nn.Module,  # noqa: N803  as everywhere in the field
    *,
    keys: torch.Tensor,
    values: torch.Tensor,
    covariance: torch.Tensor | None = None,
    keep: float | None = None,
    model: nn.Module | None = None,
) -> add_low_rank:
    """An edit of a weight after which `W k` is the value `v` for every key, and little else moves.

        fact = interp.rewrite(model.h[5].mlp.c_proj, keys=k, values=v, covariance=C)
        with nethook.edit(model, params={"h.5.mlp.c_proj.weight": fact}): ...
        nethook.edits.save("fact.json", params={"h.5.mlp.c_proj.weight": fact})

    Arguments:
        W: the layer, whose layout and bias are then known, and `values` are what it should return;
            or a weight, (outputs, inputs), and `values` are what `W k` should be.
        keys: (inputs,) for one fact, (facts, inputs), or (facts, prefixes, inputs): the mean over
            prefixes is then the key, the same one everywhere.
        values: (outputs,) or (facts, outputs).
        covariance: the mean of `k kᵀ` over keys that the layer sees, (inputs, inputs): directions
            that are often used change least. None means the identity.
        keep: None reaches every value exactly. A number λ weighs what the layer does now against
            the facts: the change minimises `|W' K - V|² + λ |(W' - W) C^½|²`.
        model: where given, a weight that the model uses in two places (tied embeddings) is refused.

    Returns:
        `nethook.edits.add_low_rank(left, right)`, of as many ranks as there are facts.

    Raises:
        OptionError: for keys that are zero or depend on each other, a covariance that is not
            positive definite, and shapes that do not fit.
    """
    weight, bias = _weight(W)
    k, v = _facts(keys, values, weight, is_layer=isinstance(W, nn.Module))
    if model is not None:
        _check_ties(model, W)
    residual = (v if bias is None else v - bias) - k @ weight.T  # (facts, outputs)
    c = _covariance(covariance, k.shape[1])
    if keep is not None:
        if not keep > 0:
            raise OptionError(f"`keep` must be a positive number or None; got {keep!r}.")
        right = torch.linalg.solve(keep * c + k.T @ k, k.T).T
        return add_low_rank(residual.T.contiguous(), right.contiguous())
    solved = torch.linalg.solve(c, k.T)  # C⁻¹ K, (inputs, facts)
    gram = k @ solved  # Kᵀ C⁻¹ K, (facts, facts)
    _check_gram(gram, k, c)
    left = torch.linalg.solve(gram, residual).T
    return add_low_rank(left.contiguous(), solved.T.contiguous())


def _weight(given: Any) -> tuple[torch.Tensor, torch.Tensor | None]:
    """The weight as (outputs, inputs), and the bias of a layer, in float64."""
    if isinstance(given, torch.Tensor):
        if given.ndim != 2:
            raise OptionError(
                f"`W` must be a weight (outputs, inputs) or a layer; got {tuple(given.shape)}."
            )
        return given.detach().double().cpu(), None
    weight = getattr(given, "weight", None)
    if not isinstance(weight, torch.Tensor) or weight.ndim != 2:
        raise OptionError(
            "`W` must be a weight (outputs, inputs), or a layer with a weight of two dimensions; "
            f"got {type(given).__name__}."
        )
    own = weight.detach().double().cpu()
    bias = getattr(given, "bias", None)
    known = bias.detach().double().cpu() if isinstance(bias, torch.Tensor) else None
    return (own.T if inputs_come_first(given) else own), known


def _facts(
    keys: torch.Tensor, values: torch.Tensor, weight: torch.Tensor, *, is_layer: bool
) -> tuple[torch.Tensor, torch.Tensor]:
    k, v = keys.detach().double().cpu(), values.detach().double().cpu()
    k = k.mean(1) if k.ndim == 3 else k
    k, v = (each[None] if each.ndim == 1 else each for each in (k, v))
    outputs, inputs = weight.shape
    if (
        k.ndim != 2
        or v.ndim != 2
        or len(k) != len(v)
        or (k.shape[1], v.shape[1]) != (inputs, outputs)
    ):
        turned = (k.shape[-1], v.shape[-1]) == (outputs, inputs) and not is_layer
        hint = " Pass the layer itself, or the weight transposed." if turned else ""
        raise OptionError(
            f"`keys` and `values` must have the shapes (facts, {inputs}) and (facts, {outputs}) "
            f"for a weight with {inputs} inputs and {outputs} outputs; got {tuple(keys.shape)} and "
            f"{tuple(values.shape)}.{hint}"
        )
    if not bool(k.isfinite().all() and v.isfinite().all()):
        raise OptionError("`keys` and `values` must be finite; got NaN or an infinity.")
    zero = (k.norm(dim=1) == 0).nonzero().flatten().tolist()
    if zero:
        raise OptionError(
            f"`keys` must not be zero; got zeros as key {zero[0]}, which no weight answers."
        )
    return k, v


def _covariance(given: torch.Tensor | None, inputs: int) -> torch.Tensor:
    if given is None:
        return torch.eye(inputs, dtype=torch.double)
    c = given.detach().double().cpu()
    if c.shape != (inputs, inputs) or not bool(c.isfinite().all()):
        raise OptionError(
            f"`covariance` must be finite and have the shape ({inputs}, {inputs}); got "
            f"{tuple(given.shape)}."
        )
    c = (c + c.T) / 2
    sizes = torch.linalg.eigvalsh(c)
    if float(sizes[0]) <= _SINGULAR * float(sizes[-1].abs()):
        raise OptionError(
            "`covariance` must be positive definite; got eigenvalues from "
            f"{float(sizes[0]):.3g} to {float(sizes[-1]):.3g}. Use more keys than inputs, or add a "
            "little of the identity: C + 1e-3 * C.diagonal().mean() * torch.eye(len(C))."
        )
    return c


def _check_gram(gram: torch.Tensor, k: torch.Tensor, c: torch.Tensor) -> None:
    """Refuses denominators that would blow the change up."""
    largest = float(torch.linalg.matrix_norm(c, 2))
    least = k.square().sum(1) / largest  # what kᵀ C⁻¹ k has at least
    if bool((gram.diagonal() < _TINY * least).any()):
        raise OptionError(
            "`keys` must be keys of this covariance; got one whose denominator kᵀ C⁻¹ k is near "
            "zero, which would destroy the layer."
        )
    scale = gram.diagonal().rsqrt()
    if float(torch.linalg.eigvalsh(scale[:, None] * gram * scale)[0]) < 1e-8:
        raise OptionError(
            "`keys` must not depend on each other; got some that nearly do, so that their values "
            "cannot all be reached. Leave one out, or weigh them: keep=0.1."
        )


def _check_ties(model: nn.Module, given: Any) -> None:
    tensor = given if isinstance(given, torch.Tensor) else given.weight
    for site in Tree(model).parameters().sites:
        if site.tensor is tensor and len(site.owners) > 1:
            raise OptionError(
                f"`W` must be used in one place; got {site.address!r}, which is tied to "
                f"{len(site.owners) - 1} other. A change would act at both ends: untie it."
            )
