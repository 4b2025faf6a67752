"""Reading the outputs of 12 blocks of a small GPT-2, by every tool that can.

Each way finds the blocks, runs one forward and returns their outputs, as the tool's own
documentation does it. What it costs to make the tool's own model or wrapper is not counted.

Each way makes a capture for a model; `questions` asks what it gets right.
"""

from __future__ import annotations

import copy
import importlib
import importlib.util
import os
import re
import tempfile
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from peers.questions import (
    Capture,
    Captured,
    asked,
    closeness,
    compiled,
    left_behind,
    overwritten,
    two_calls,
)
from peers.turns import NotHereError, Work, functions_of_torch

BLOCKS, TOKENS, WIDTH, VOCABULARY = 12, 16, 64, 100
STEPS = 1  # forwards of a run


def gpt2() -> Any:
    """A GPT-2 with random weights."""
    from transformers import GPT2Config, GPT2LMHeadModel

    torch.manual_seed(0)
    config = GPT2Config(
        n_embd=WIDTH, n_layer=BLOCKS, n_head=4, vocab_size=VOCABULARY, n_positions=TOKENS,
        bos_token_id=0, eos_token_id=0,
    )  # fmt: skip
    model: Any = GPT2LMHeadModel  # its constructor is not typed
    return model(config).eval()


def tensor_of(value: Any) -> Tensor:
    """The tensor of an output, which may be a tuple or an object with logits."""
    while not isinstance(value, Tensor):
        value = value.logits if hasattr(value, "logits") else value[0]
    return value


def with_hooks(_: nn.Module, copies: bool = False) -> Capture:
    """What people write: `kept[name] = output.detach()`; with `copies` a clone of it."""

    def capture(model: nn.Module, names: Sequence[str], x: Tensor) -> tuple[Captured, Any]:
        kept: Captured = {}
        modules = dict(model.named_modules())

        def keep(name: str) -> Callable[[nn.Module, Any, Any], None]:
            def hook(_: nn.Module, __: Any, output: Any) -> None:
                value = tensor_of(output).detach()
                # The last call wins: a dictionary has one value per name.
                kept[name] = [value.clone() if copies else value]

            return hook

        handles = [modules[name].register_forward_hook(keep(name)) for name in names]
        try:
            return kept, model(x)
        finally:
            for handle in handles:
                handle.remove()

    return capture


def with_nethook(_: nn.Module) -> Capture:
    """`nethook.trace`."""
    import nethook

    def capture(model: nn.Module, names: Sequence[str], x: Tensor) -> tuple[Captured, Any]:
        with nethook.trace(model, *names) as tape:
            output = model(x)
        return {
            name: [tensor_of(call.output) for call in tape[name].calls] for name in names
        }, output

    return capture


def with_baukit(_: nn.Module) -> Capture:
    """`baukit.TraceDict`, from a copy of its file: it is on no registry."""
    path = os.environ.get("BAUKIT", "")
    if not path:
        raise NotHereError("it is on no registry; BAUKIT=path/to/baukit/nethook.py measures it")
    spec = importlib.util.spec_from_file_location("baukit_nethook", path)
    if spec is None or spec.loader is None:
        raise NotHereError(f"{path} is no Python file")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)

    def capture(model: nn.Module, names: Sequence[str], x: Tensor) -> tuple[Captured, Any]:
        with module.TraceDict(model, list(names)) as kept:
            output = model(x)
        return {name: [tensor_of(kept[name].output)] for name in names}, output

    return capture


def with_nnsight(model: nn.Module) -> Capture:
    """A trace of `nnsight.NNsight`."""
    nnsight = importlib.import_module("nnsight")
    wrappers = {id(model): nnsight.NNsight(model)}

    def capture(model: nn.Module, names: Sequence[str], x: Tensor) -> tuple[Captured, Any]:
        if id(model) not in wrappers:
            wrappers[id(model)] = nnsight.NNsight(model)
        wrapped = wrappers[id(model)]
        places = [part_of(wrapped, name) for name in names]
        kept, last = [], []
        with wrapped.trace(x):
            for place in places:
                kept.append(place.output.save())  # noqa: PERF401  a trace is no place to be clever
            last.append(wrapped.output.save())
        return {name: [tensor_of(value)] for name, value in zip(names, kept, strict=True)}, last[0]

    return capture


def part_of(model: Any, name: str) -> Any:
    """The part of a wrapped model, by its dotted name."""
    for step in name.split("."):
        model = model[int(step)] if step.isdigit() else getattr(model, step)
    return model


def with_pyvene(_: nn.Module) -> Capture:
    """`CollectIntervention`s at paths such as `h[0].output`."""
    pyvene = importlib.import_module("pyvene")
    wrappers: dict[tuple[int, tuple[str, ...]], Any] = {}

    def wrapper(model: nn.Module, names: tuple[str, ...]) -> Any:
        key = id(model), names
        if key not in wrappers:
            paths = [re.sub(r"\.(\d+)(?=\.|$)", r"[\1]", name) for name in names]
            config = pyvene.IntervenableConfig(
                [
                    {
                        "component": f"{path}.output",
                        "intervention_type": pyvene.CollectIntervention,
                    }
                    for path in paths
                ]
            )
            wrappers[key] = pyvene.IntervenableModel(config, model)
        return wrappers[key]

    def capture(model: nn.Module, names: Sequence[str], x: Tensor) -> tuple[Captured, Any]:
        wrapped = wrapper(model, tuple(names))
        inputs = {"input_ids": x} if x.dtype == torch.long else {"x": x}
        # Without asking for it, the output of the base run is not returned beside.
        (output, values), _ = wrapped(inputs, unit_locations=None, output_original_output=True)
        return {name: [tensor_of(value)] for name, value in zip(names, values, strict=True)}, output

    return capture


def with_torchlens(_: nn.Module) -> Capture:
    """`torchlens.trace`: the whole record of a forward."""
    torchlens = importlib.import_module("torchlens")

    def capture(model: nn.Module, names: Sequence[str], x: Tensor) -> tuple[Captured, Any]:
        trace = torchlens.trace(model, x)
        kept = {name: [call.out for call in trace.modules[name].calls.values()] for name in names}
        return kept, trace[trace.output_layers[0]].out

    return capture


def with_torchlens_record(_: nn.Module) -> Capture:
    """`torchlens.record`: only the additions of blocks; the last is the block's output."""
    torchlens = importlib.import_module("torchlens")

    def capture(model: nn.Module, names: Sequence[str], x: Tensor) -> tuple[Captured, Any]:
        wanted = set(names)

        def keep(event: Any) -> bool:
            return bool(
                event.kind == "op" and event.address in wanted and event.layer_type == "add"
            )

        output, record = torchlens.record(model, x, save=keep, return_output=True)
        return {
            name: [record.records[record.by_address[name][-1]].ram_payload] for name in names
        }, output

    return capture


def with_transformer_lens(model: nn.Module) -> Capture:
    """`run_with_cache` of a bridge around the same weights."""
    bridges = importlib.import_module("transformer_lens.model_bridge").TransformerBridge
    with tempfile.TemporaryDirectory() as folder:
        bridge = bridges.boot_transformers("gpt2", hf_model=model, tokenizer=tokenizer(folder))

    def capture(_: nn.Module, names: Sequence[str], x: Tensor) -> tuple[Captured, Any]:
        hooks = {name: f"blocks.{name.rpartition('.')[2]}.hook_out" for name in names}
        wanted = set(hooks.values())
        output, cache = bridge.run_with_cache(x, names_filter=lambda name: name in wanted)
        return {name: [cache[hook]] for name, hook in hooks.items()}, output

    return capture


def tokenizer(folder: str) -> Any:
    """A tokenizer that needs no network: TransformerLens wants one."""
    from tokenizers import Tokenizer, models
    from transformers import PreTrainedTokenizerFast

    words = Tokenizer(models.WordLevel({str(n): n for n in range(VOCABULARY)}, unk_token="0"))
    made: Any = PreTrainedTokenizerFast  # its constructor is not typed
    made(tokenizer_object=words, eos_token="0", bos_token="0", pad_token="0").save_pretrained(
        folder
    )
    return made.from_pretrained(folder)


WAYS: Mapping[str, tuple[str, Callable[[nn.Module], Capture]]] = {
    "hooks by hand": ("torch", with_hooks),
    "nethook": ("nethook", with_nethook),
    "baukit": ("baukit", with_baukit),
    "nnsight": ("nnsight", with_nnsight),
    "pyvene": ("pyvene", with_pyvene),
    "TransformerLens": ("transformer-lens", with_transformer_lens),
    "torchlens, record": ("torchlens", with_torchlens_record),
    "torchlens, trace": ("torchlens", with_torchlens),
}
ONLY_LANGUAGE_MODELS = {"TransformerLens"}
ONLY_ADDITIONS = {"torchlens, record"}  # the predicate is written for blocks that end with one


def make(way: str) -> Work:
    """The work of one way, in its own process."""
    model = gpt2()
    names = [f"transformer.h.{n}" for n in range(BLOCKS)]
    tokens = torch.arange(TOKENS).unsqueeze(0)
    with torch.no_grad():
        right, output = with_hooks(model, copies=True)(model, names, tokens)
    functions = functions_of_torch()
    # A copy: some tools leave hooks on a model, or change how it computes.
    theirs = copy.deepcopy(model)
    capture = WAYS[way][1](theirs)

    def run() -> Any:
        with torch.no_grad():
            return capture(theirs, names, tokens)

    def check() -> dict[str, str]:
        kept, given = run()
        found = {
            "values": closeness(
                torch.stack([kept[name][-1] for name in names]),
                torch.stack([right[name][0] for name in names]),
            ),
            "output": closeness(tensor_of(given), tensor_of(output)),
            "left": left_behind(theirs, functions),
        }
        if way in ONLY_LANGUAGE_MODELS:
            return found | dict.fromkeys(
                ("twice", "overwritten", "compiled"), "language models only"
            )
        if way in ONLY_ADDITIONS:
            return found | dict.fromkeys(("twice", "overwritten", "compiled"), "as trace")
        return found | {
            "twice": asked(lambda: two_calls(capture)),
            "overwritten": asked(lambda: overwritten(capture)),
            "compiled": asked(lambda: compiled(capture)),
        }

    return Work(run, check, 1 if way.startswith("torchlens") else 10)
