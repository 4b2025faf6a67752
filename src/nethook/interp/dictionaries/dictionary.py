"""Dictionaries of many makes as one: `encode` to features, `decode` back.

Anything with the two methods will do: an SAE or transcoder of SAELens or dictionary_learning, whose
`encode` gives the features; of sparsify, which gives the largest and where they are; of
overcomplete, which gives them after what they were before the activation.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import nn

from nethook.errors import OptionError


class Dictionary:
    """`encode(x)` gives (…, features), `decode(f)` gives (…, width), in the dictionary's type."""

    def __init__(self, given: Any, site: str) -> None:
        for name in ("encode", "decode"):
            if not callable(getattr(given, name, None)):
                raise OptionError(
                    f"the dictionary at {site!r} must have methods encode and decode; got "
                    f"{type(given).__name__} without {name}."
                )
        self._given = given
        self._site = site
        self._sparse = False
        first = next(iter(given.parameters()), None) if isinstance(given, nn.Module) else None
        self._dtype = None if first is None else first.dtype

    @property
    def skips(self) -> bool:
        """Whether it adds something beside its features, which decoding them leaves out."""
        return getattr(self._given, "W_skip", None) is not None

    def encode(self, x: torch.Tensor) -> torch.Tensor:
        """The features of values."""
        found = self._given.encode(x if self._dtype is None else x.to(self._dtype))
        if isinstance(found, torch.Tensor):
            return found
        acts, places = (getattr(found, name, None) for name in ("top_acts", "top_indices"))
        if isinstance(acts, torch.Tensor) and isinstance(places, torch.Tensor):
            self._sparse = True
            dense = torch.zeros(
                *acts.shape[:-1], self._size(), dtype=acts.dtype, device=acts.device
            )
            return dense.scatter(-1, places, acts)
        if isinstance(found, tuple | list) and found and isinstance(found[-1], torch.Tensor):
            return found[-1]
        raise OptionError(
            f"encode of the dictionary at {self._site!r} must return features as a tensor; got "
            f"{type(found).__name__}."
        )

    def decode(self, features: torch.Tensor) -> torch.Tensor:
        """The values that features stand for."""
        if self._sparse:
            most = max(1, int((features != 0).sum(-1).max()))
            places = features.abs().topk(most, -1).indices
            found = self._given.decode(features.gather(-1, places), places)
        else:
            found = self._given.decode(features)
        if not isinstance(found, torch.Tensor):
            raise OptionError(
                f"decode of the dictionary at {self._site!r} must return a tensor; got "
                f"{type(found).__name__}."
            )
        return found

    def _size(self) -> int:
        size = getattr(self._given, "num_latents", None)
        if isinstance(size, int):
            return size
        return int(self._given.W_dec.shape[0])
