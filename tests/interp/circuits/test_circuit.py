"""Circuits: which edges are enough."""

from __future__ import annotations

from typing import Any

import pytest
import torch

import nethook
from nethook.errors import NoSuchSiteError, OptionError
from nethook.interp.circuits.circuit import circuit
from nethook.interp.circuits.stream import find_stream
from tests.interp import compiled_networks, families

BASE = torch.tensor([[0, 1, 2, 3, 4, 5, 6, 1]])
SOURCE = torch.tensor([[0, 7, 2, 3, 4, 5, 6, 1]])
# Tokens and positions reach every attention; the previous token and the answer, one head each.
INDUCTION: list[Any] = [
    ("embedding", "blocks.0.attention"),
    ("embedding", "blocks.1.attention"),
    (("blocks.0.attention", 0), "blocks.1.attention"),
    (("blocks.1.attention", 0), "unembed"),
]


def logit(out: torch.Tensor) -> torch.Tensor:
    return out[:, -1, 2]


def test_the_induction_circuit_is_faithful() -> None:
    found = circuit(compiled_networks.induction(), INDUCTION)
    result = found.faithfulness(BASE, SOURCE, metric=logit)
    assert result.mean == pytest.approx(1.0, abs=1e-6)
    assert (result.kept, result.edges) == (4, 12)
    assert float(result.none) == pytest.approx(0.125, abs=1e-4)
    assert repr(result).startswith("faithfulness 1.000 with 4 of 12 edges")
    assert "blocks.0.attention head 0 → blocks.1.attention" in repr(found)


# Between this pair the embeddings differ in a token that no attention looks at.
@pytest.mark.parametrize("missing", [2, 3])
def test_without_one_of_its_heads_nothing_is_left(missing: int) -> None:
    edges = [edge for index, edge in enumerate(INDUCTION) if index != missing]
    result = circuit(compiled_networks.induction(), edges).faithfulness(BASE, SOURCE, metric=logit)
    assert result.mean == pytest.approx(0.0, abs=1e-4)


@pytest.mark.parametrize("name", ["gpt2", "llama", "neox", "vit"])
def test_all_edges_are_the_model_and_none_is_the_source(name: str) -> None:
    model, inputs = families.built(name)
    key = next(iter(inputs))
    other = {key: inputs[key].flip(0)}

    def metric(out: Any) -> torch.Tensor:
        return out.logits[:, -1, 3] if out.logits.ndim == 3 else out.logits[:, 0]

    stream = find_stream(model, inputs)
    every = [(s, r) for r in stream.readers for s in ("embedding", *stream.before[r])]
    whole = circuit(model, every).faithfulness(inputs, other, metric=metric)
    assert torch.equal(whole.circuit, whole.whole)
    with torch.no_grad():
        source = metric(model(**other))
    torch.testing.assert_close(whole.none, source, rtol=1e-4, atol=1e-6)
    assert not nethook.audit(model)


def test_errors_say_what_to_type() -> None:
    model = compiled_networks.induction()

    def run(*edges: Any) -> object:
        return circuit(model, edges).faithfulness(BASE, SOURCE, metric=logit)

    with pytest.raises(NoSuchSiteError, match="'embed' does not read the residual stream"):
        run(("embedding", "embed"))
    with pytest.raises(OptionError, match="an edge must lead forward"):
        run(("blocks.1.attention", "blocks.0.attention"))
    with pytest.raises(OptionError, match="as a whole or by heads in one circuit; got both"):
        run(("blocks.0.attention", "unembed"), (("blocks.0.attention", 0), "unembed"))
    same = circuit(model, []).faithfulness(BASE, BASE, metric=logit)
    with pytest.raises(OptionError, match=r"faithfulness is not defined in rows \[0\]"):
        _ = same.values
