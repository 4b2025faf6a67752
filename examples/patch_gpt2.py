"""“Patch activations of one text into another”: which block and token of a GPT-2 has the answer?

A tiny GPT-2 is trained on a task whose answer is known: the second token decides what the last one
must be. Then two texts that differ in that token are compared: values of the one are put into the
run of the other, one block and one position at a time. Where the answer moves along, it was carried
there: in the second word to begin with, and soon in the last position. Tutorials loop over layers
and positions with a hook and a forward each; `interp.sweep` runs all of it in a few batches.
"""

import tempfile
from pathlib import Path
from typing import Any

import torch
from transformers import GPT2Config, GPT2LMHeadModel

import nethook
from nethook import interp

torch.manual_seed(0)
LENGTH, WORDS = 6, 12


def texts(count: int) -> torch.Tensor:
    """Random words; the last one repeats the second."""
    ids = torch.randint(1, WORDS, (count, LENGTH))
    ids[:, -1] = ids[:, 1]
    return ids


config = GPT2Config(
    n_layer=3, n_head=2, n_embd=32, vocab_size=WORDS, n_positions=LENGTH, bos_token_id=0,
    eos_token_id=0, resid_pdrop=0.0, embd_pdrop=0.0, attn_pdrop=0.0,
)  # fmt: skip
model: Any = GPT2LMHeadModel(config)  # type: ignore[no-untyped-call]
optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
for _ in range(250):
    ids = texts(64)
    logits = model(ids[:, :-1], use_cache=False).logits[:, -1]
    loss = torch.nn.functional.cross_entropy(logits, ids[:, -1])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
model.eval()
print(f"loss {loss.item():.3f}")

# Sixteen pairs of texts: the source differs from the base in the second word alone.
base = texts(16)[:, :-1]
source = base.clone()
source[:, 1] = base[:, 1] % (WORDS - 1) + 1
old, new = base[:, 1], source[:, 1]
rows = torch.arange(16)

result = interp.sweep(
    model,
    nethook.inputs(base, use_cache=False),
    at=["transformer.drop", "transformer.h.*"],  # the embeddings, and every block
    over="positions",
    change=interp.take(nethook.inputs(source, use_cache=False)),
    metric=lambda out: out.logits[rows, -1, new] - out.logits[rows, -1, old],
)
for one in result.top(4):
    print(f"{one.site} {one.cell}: {one.mean:+.2f} ({one.low:+.2f} … {one.high:+.2f})")
recovered = result.recovered.mean(-1)
for number, name in ((1, "second"), (4, "last")):
    shares = ", ".join(f"{share:.2f}" for share in recovered[:, number])
    print(f"recovered by the {name} position: {shares}")
print(f"the other positions: at most {recovered[:, [0, 2, 3]].abs().max():.2f}")

with tempfile.TemporaryDirectory() as folder:
    result.save(Path(folder) / "patching.json")
    figure = result.figure(tokens=["first", "second", "third", "fourth", "fifth"])
    figure.write_html(Path(folder) / "patching.html")
    print("written:", ", ".join(sorted(path.name for path in Path(folder).iterdir())))
print("left behind:", nethook.audit(model))
