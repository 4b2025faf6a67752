"""Activation patching of a GPT-2: every block and position, by hand, by nethook and by others.

    python benchmarks/sweep.py             # d=64 and d=256; --json FILE keeps the figures
    make bench-peers                       # with nnsight and TransformerLens: build/peers.json

The same work in every way: 12 blocks and 16 positions of one text, each patched from another text,
and the difference of two logits at the last position. One thread; seconds of the processor; ways
take turns. Numbers are compared before anything is timed.

- hand loop: a forward hook for each cell, one forward each: what most people write.
- exact: `interp.sweep(..., rows=1)`: calls before the cell are answered, bit for bit the same.
- batched: `interp.sweep(...)`: cells share runs.
- limit: written by hand for this model: all positions of a block as one batch, from that block on.
"""

from __future__ import annotations

import argparse
import copy
import importlib
import importlib.metadata
import importlib.util
import json
import logging
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from timing import take_turns
from transformers import GPT2Config, GPT2LMHeadModel
from transformers.utils.logging import set_verbosity

import nethook
from nethook import interp

LAYERS, POSITIONS, VOCABULARY = 12, 16, 256


def network(width: int) -> Any:
    """A GPT-2 with random weights."""
    torch.manual_seed(0)
    config = GPT2Config(
        n_layer=LAYERS, n_head=4, n_embd=width, vocab_size=VOCABULARY, n_positions=64,
        bos_token_id=0, eos_token_id=0,
    )  # fmt: skip
    model: Any = GPT2LMHeadModel  # its constructor is not typed
    return model(config).eval()


def difference(output: Any) -> torch.Tensor:
    """The metric: one number per row."""
    logits: torch.Tensor = output.logits[:, -1]
    return logits[:, 3] - logits[:, 7]


def by_hand(model: Any, base: torch.Tensor, source: torch.Tensor) -> torch.Tensor:
    """A hook and a forward for each cell."""
    blocks = model.transformer.h
    kept: dict[int, torch.Tensor] = {}
    options = {"use_cache": False, "logits_to_keep": 1}
    with torch.no_grad():
        handles = [
            block.register_forward_hook(lambda _m, _a, out, n=n: kept.__setitem__(n, out))
            for n, block in enumerate(blocks)
        ]
        model(source, **options)
        for handle in handles:
            handle.remove()
        values = torch.zeros(len(blocks), base.shape[1], len(base))
        for n, block in enumerate(blocks):
            for position in range(base.shape[1]):

                def patch(_m: Any, _a: Any, out: Any, n: int = n, at: int = position) -> Any:
                    out = out.clone()
                    out[:, at] = kept[n][:, at]
                    return out

                handle = block.register_forward_hook(patch)
                values[n, position] = difference(model(base, **options))
                handle.remove()
    return values


def by_nethook(model: Any, base: torch.Tensor, source: torch.Tensor, rows: int | None) -> Any:
    """One call."""
    options = {"use_cache": False, "logits_to_keep": 1}
    return interp.sweep(
        model,
        nethook.inputs(base, **options),
        at="transformer.h.*",
        over="positions",
        change=interp.take(nethook.inputs(source, **options)),
        metric=difference,
        rows=rows,
    )


def at_the_limit(model: Any, base: torch.Tensor, source: torch.Tensor) -> torch.Tensor:
    """What can be done for this one model: the blocks after the patched one, on all positions."""
    body, values = model.transformer, []
    with torch.no_grad():

        def states(ids: torch.Tensor) -> list[torch.Tensor]:
            hidden = body.wte(ids) + body.wpe(torch.arange(ids.shape[1]))
            kept = []
            for block in body.h:
                hidden = block(hidden)
                kept.append(hidden)
            return kept

        mine, theirs = states(base), states(source)
        count = base.shape[1]
        for n in range(len(body.h)):
            hidden = mine[n].repeat(count, 1, 1)
            each = torch.arange(count)
            hidden[each, each] = theirs[n][0]
            for block in body.h[n + 1 :]:
                hidden = block(hidden)
            logits = model.lm_head(body.ln_f(hidden[:, -1]))
            values.append(logits[:, 3] - logits[:, 7])
    return torch.stack(values)[..., None]


def by_nnsight(model: Any, base: torch.Tensor, source: torch.Tensor) -> Callable[[], torch.Tensor]:
    """A trace for each cell, as its tutorials do."""
    # A copy: it leaves hooks on the model, and what has hooks of others must run whole.
    wrapped = importlib.import_module("nnsight").NNsight(copy.deepcopy(model))
    options = {"use_cache": False, "logits_to_keep": 1}

    def run() -> torch.Tensor:
        kept = []
        with torch.no_grad(), wrapped.trace(source, **options):
            for block in wrapped.transformer.h:
                kept.append(block.output.save())  # noqa: PERF401  a trace is no place to be clever
        values = torch.zeros(LAYERS, POSITIONS, 1)
        for n in range(LAYERS):
            for position in range(POSITIONS):
                with torch.no_grad(), wrapped.trace(base, **options):
                    wrapped.transformer.h[n].output[:, position] = kept[n][:, position]
                    logits = wrapped.lm_head.output.save()
                values[n, position] = logits[:, -1, 3] - logits[:, -1, 7]
        return values

    return run


def by_transformer_lens(model: Any, base: torch.Tensor, source: torch.Tensor) -> Callable[[], Any]:
    """Its own sweep, on its own model of the same size."""
    bridge = importlib.import_module("transformer_lens.model_bridge").TransformerBridge
    patching = importlib.import_module("transformer_lens.patching")
    width = model.config.n_embd
    own = bridge.boot_native(
        {
            "n_layers": LAYERS, "d_model": width, "n_ctx": 64, "d_head": width // 4, "n_heads": 4,
            "d_mlp": 4 * width, "d_vocab": VOCABULARY, "act_fn": "gelu_new",
            "normalization_type": "LN", "seed": 0,
        }
    )  # fmt: skip
    own.eval()

    def run() -> Any:
        with torch.no_grad():
            _, cache = own.run_with_cache(source)

            def metric(logits: torch.Tensor) -> torch.Tensor:
                return (logits[:, -1, 3] - logits[:, -1, 7]).mean()

            return patching.get_act_patch_resid_pre(own, base, cache, metric)

    return run


def main() -> None:
    """Prints, for each width, seconds and how many times faster than the hand loop."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=4)
    parser.add_argument("--widths", type=int, nargs="*", default=[64, 256])
    parser.add_argument("--peers", action="store_true", help="nnsight and TransformerLens as well")
    parser.add_argument("--json", type=Path, help="a file for the figures")
    options = parser.parse_args()
    torch.set_num_threads(1)
    set_verbosity(logging.ERROR)
    warnings.simplefilter("ignore")
    tables = [compare(width, options.rounds, peers=options.peers) for width in options.widths]
    if options.json is not None:
        options.json.parent.mkdir(parents=True, exist_ok=True)
        options.json.write_text(json.dumps(tables, indent=1) + "\n")


def compare(width: int, rounds: int, *, peers: bool) -> dict[str, Any]:
    """One table: printed, and returned as plain data."""
    model = network(width)
    base, source = torch.randint(1, VOCABULARY, (2, 1, POSITIONS))
    ways: dict[str, Callable[[], Any]] = {
        "hand loop": lambda: by_hand(model, base, source),
        "nethook exact": lambda: by_nethook(model, base, source, 1).values,
        "nethook batched": lambda: by_nethook(model, base, source, None).values,
        "limit": lambda: at_the_limit(model, base, source),
    }
    expected = ways["hand loop"]()
    assert torch.equal(ways["nethook exact"](), expected)
    for way in ("nethook batched", "limit"):
        torch.testing.assert_close(ways[way](), expected, rtol=1e-4, atol=1e-5)
    if peers:
        for name, module, make in (
            ("nnsight", "nnsight", by_nnsight),
            ("TransformerLens", "transformer_lens", by_transformer_lens),
        ):
            if importlib.util.find_spec(module) is None:
                raise SystemExit(f"{name} is not installed here: make bench-peers has it")
            ways[name] = make(model, base, source)
    seconds = take_turns(ways, rounds, 1)
    result = by_nethook(model, base, source, None)
    print(f"\nGPT-2 of {LAYERS} blocks, {POSITIONS} positions, d={width}")
    print(f"nethook batched: {result.rows} cells share a run, {result.runs} runs")
    for name, took in seconds.items():
        print(f"  {name:16} {took:8.3f} s   {seconds['hand loop'] / took:6.2f} times")
    versions = {
        name: importlib.metadata.version(name)
        for name in ("torch", "transformers", *(("nnsight", "transformer-lens") if peers else ()))
    }
    return {
        "blocks": LAYERS, "positions": POSITIONS, "width": width, "rows": result.rows,
        "runs": result.runs, "seconds": seconds, "versions": versions,
    }  # fmt: skip


if __name__ == "__main__":
    main()
