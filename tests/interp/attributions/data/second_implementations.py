"""Numbers of shap and of torchcrepe's network, which have environments of their own.

    python -m venv .venv-others
    .venv-others/bin/pip install -c constraints.txt torch safetensors typer rich
    .venv-others/bin/pip install shap==0.51.0 torchcrepe==0.0.24
    PYTHONPATH=src .venv-others/bin/python tests/interp/attributions/data/second_implementations.py

writes shap.json and torchcrepe.json beside this file, which tests read. shap's networks are made
from weights that both sides compute, so no file of weights is needed. torchcrepe's network and
weights are those of its package; only its own files are loaded, for the package wants torchaudio.
"""

from __future__ import annotations

import importlib.util
import json
import math
import sys
import types
from pathlib import Path
from typing import Any

import torch
from torch import nn

HERE = Path(__file__).parent
RATE, LENGTH = 16_000, 1024  # of a frame of torchcrepe's
TONE = 440.0
BIN = round((1200 * math.log2(TONE / 10.0) - 1997.3794084376191) / 20)


def network() -> nn.Module:
    """A network of ReLUs whose weights are sines, the same everywhere."""
    model = nn.Sequential(nn.Linear(6, 12), nn.ReLU(), nn.Linear(12, 8), nn.ReLU(), nn.Linear(8, 2))
    model = model.double()
    with torch.no_grad():
        for number, parameter in enumerate(model.parameters()):
            count = torch.arange(parameter.numel(), dtype=torch.float64)
            parameter.copy_(torch.sin(1.7 * count + number).reshape(parameter.shape))
    return model.eval()


def rows(count: int, start: float) -> torch.Tensor:
    """Rows of data, the same everywhere."""
    return torch.cos(torch.arange(count * 6, dtype=torch.float64) * 0.9 + start).reshape(count, 6)


def frame() -> torch.Tensor:
    """Noise, then a tone as loud as the noise; one frame."""
    noise = torch.randn(LENGTH // 2, generator=torch.Generator().manual_seed(0))
    time = torch.arange(LENGTH // 2) / RATE
    tone = math.sqrt(2) * torch.sin(2 * math.pi * TONE * time)
    return torch.cat([noise / noise.std(), tone])[None]


def crepe() -> nn.Module:
    """torchcrepe's small network with its weights."""
    found = importlib.util.find_spec("torchcrepe")
    assert found is not None
    assert found.origin is not None
    folder = Path(found.origin).parent
    stub: Any = types.ModuleType("torchcrepe")
    stub.PITCH_BINS = 360
    sys.modules["torchcrepe"] = stub
    spec = importlib.util.spec_from_file_location("torchcrepe_model", folder / "model.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    model: nn.Module = module.Crepe("tiny")
    model.load_state_dict(torch.load(folder / "assets" / "tiny.pth", weights_only=True))
    return model.eval()


def of_shap() -> dict[str, Any]:
    """DeepExplainer, and exact Shapley values, of the network of ReLUs."""
    import shap

    model, x, base = network(), rows(4, 0.0), rows(1, 2.0)
    deep = shap.DeepExplainer(model, base).shap_values(x)

    def first(values: Any) -> Any:
        with torch.no_grad():
            return model(torch.as_tensor(values, dtype=torch.float64))[:, 0].numpy()

    masker = shap.maskers.Independent(base.numpy(), max_samples=1)
    exact = shap.explainers.ExactExplainer(first, masker)(x.numpy())
    return {
        "version": shap.__version__, "deep": deep[..., 0].tolist(), "exact": exact.values.tolist(),
    }  # fmt: skip


def of_crepe() -> dict[str, Any]:
    """How much of each attribution lies on the tone."""
    from nethook import interp

    model, x = crepe(), frame()
    target = lambda out: torch.logit(out[:, BIN])  # noqa: E731
    found = {
        "integrated_gradients": interp.integrated_gradients(
            model, x, target, baseline=0, tol=0.05, max_steps=2048
        ),
        "op_lift": interp.op_lift(model, x, target, baseline=0, tol=0.05),
        "occlusion": interp.occlusion(model, x, target, window=64, baseline=0),
    }
    half = LENGTH // 2
    with torch.no_grad():
        top = int(model(x)[0].argmax())
    return {
        "top_bin": top, "bin": BIN,
        **{
            name: {
                "kind": one.kind,
                "tone": float(one.values[0, half:].sum()),
                "noise": float(one.values[0, :half].sum()),
                "change": float(one.score[0] - one.start[0]),
                "delta": None if one.delta is None else float(one.delta[0]),
                "share_of_size": float(one.values[0, half:].abs().sum() / one.values.abs().sum()),
            }
            for name, one in found.items()
        },
    }  # fmt: skip


if __name__ == "__main__":
    for name, made in (("shap", of_shap), ("torchcrepe", of_crepe)):
        if name in sys.argv[1:] or len(sys.argv) == 1:
            text = json.dumps(made(), indent=1) + "\n"
            (HERE / f"{name}.json").write_text(text, encoding="utf-8")
            print(text)
