"""Which tokens of a generation are its prompt, and which were made.

A generation calls a model once for the prompt and then once per token. With a cache, later calls
have one token each; without one they have the prompt again, and a token more than the call before.
Columns of a batch tell the two apart: those of the first call are the prompt, in every row alike.
A prompt may come in several pieces of more than one token (a chunked prefill). A call that holds
the end of a prompt and guesses of what follows (assisted decoding) is taken for a prompt.
"""

from __future__ import annotations

from weakref import WeakKeyDictionary

import torch
from torch import nn

from nethook.hooks.autograd.lazy_copy import cheap_copy


class Generation:
    """What one module was called with since a prompt began."""

    __slots__ = ("_columns", "_decodes", "_prompt", "_seen")

    def __init__(self) -> None:
        self._columns = 0  # of the prompt
        self._seen = 0  # columns so far
        self._decodes = False
        self._prompt: torch.Tensor | None = None

    def prompt_columns(self, tokens: torch.Tensor, start: int) -> int:
        """How many columns of this generation are its prompt, after one more call.

        `tokens` are ids or embeddings, (rows, length, …); the first is column `start`.
        """
        length = tokens.shape[1]
        if start == 0:
            if not self._goes_on(tokens):
                self._columns = length
                self._prompt = cheap_copy(tokens, detach=True)
                self._decodes = False
        elif length > 1 and not self._decodes:
            self._columns = start + length  # a further piece of the prompt
            self._prompt = None
        else:
            if not self._seen:  # its beginning was not seen
                self._columns = start
            self._decodes = True
        self._seen = start + length
        return self._columns

    def _goes_on(self, tokens: torch.Tensor) -> bool:
        """Whether these are the tokens of the last call, and one more."""
        prompt = self._prompt
        if prompt is None or tokens.shape[1] != self._seen + 1:
            return False
        # Beams change places within a text, so rows may differ behind the prompt.
        begins = tokens[:, : prompt.shape[1]]
        return begins.shape == prompt.shape and torch.equal(begins, prompt)


class Generations:
    """The generation under way of each module that is called with tokens."""

    def __init__(self) -> None:
        self._of: WeakKeyDictionary[nn.Module, Generation] = WeakKeyDictionary()

    def is_prompt(self, module: nn.Module, tokens: torch.Tensor, start: int) -> torch.Tensor:
        """For each column of a call, whether it is of the prompt: (1, length)."""
        if module not in self._of:
            self._of[module] = Generation()
        columns = self._of[module].prompt_columns(tokens, start)
        places = torch.arange(start, start + tokens.shape[1], device=tokens.device)
        return (places < columns)[None]
