"""The callback in a real `Trainer` of transformers."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import BertConfig, BertForSequenceClassification, Trainer, TrainingArguments

import nethook
from nethook.doctor.finding import Finding
from nethook.hf import NethookCallback
from nethook.watching.diagnosis import Diagnosis

pytestmark = pytest.mark.filterwarnings("ignore")  # transformers and Accelerate have advice


def model() -> Any:
    torch.manual_seed(0)
    config = BertConfig(
        hidden_size=16, num_hidden_layers=1, num_attention_heads=2, intermediate_size=16,
        vocab_size=20, max_position_embeddings=8,
    )  # fmt: skip
    return BertForSequenceClassification(config)


def data() -> list[dict[str, torch.Tensor]]:
    ids = torch.randint(0, 20, (32, 6), generator=torch.Generator().manual_seed(0))
    return [{"input_ids": row, "labels": (row[0] > 9).long()} for row in ids]


def trainer(folder: Path, callback: NethookCallback, **options: Any) -> Trainer:
    arguments = TrainingArguments(
        **{
            "output_dir": str(folder / "out"), "num_train_epochs": 2, "logging_steps": 2,
            "per_device_train_batch_size": 8, "report_to": "none", "disable_tqdm": True,
            "save_strategy": "no", "use_cpu": True, **options,
        }
    )  # fmt: skip
    return Trainer(
        model(), arguments, train_dataset=data(), eval_dataset=data(), callbacks=[callback]
    )


def test_a_training_is_one_run_with_the_trainers_numbers(tmp_path: Path) -> None:
    callback = NethookCallback(tmp_path / "run.db")
    training = trainer(tmp_path, callback, eval_strategy="epoch")
    training.train()
    evaluated = training.evaluate()  # logs after the end of the training
    assert evaluated["eval_loss"] > 0
    history = training.state.log_history
    with nethook.open_run(tmp_path / "run.db") as run:
        assert run.info["totals"]["steps"] == training.state.global_step == 8
        logged = [entry["loss"] for entry in history if "loss" in entry]
        assert run.scalars["trainer/loss"].value.tolist() == pytest.approx(logged)
        norms = [entry["grad_norm"] for entry in history if "grad_norm" in entry]
        assert run.scalars["trainer/grad_norm"].value.tolist() == pytest.approx(norms)
        assert len(run.scalars["grad_norm"]) == 8  # nethook's own, beside it
        of_eval = [entry["eval_loss"] for entry in history if "eval_loss" in entry][:2]
        assert run.scalars["trainer/eval_loss"].value.tolist() == pytest.approx(of_eval)


def test_a_training_goes_on_in_its_run(tmp_path: Path) -> None:
    first = NethookCallback(tmp_path / "run.db")
    trainer(tmp_path, first, save_strategy="steps", save_steps=4, max_steps=4).train()
    kept = json.loads((tmp_path / "out/checkpoint-4/nethook.json").read_text(encoding="utf-8"))
    assert kept == {"run": str(tmp_path / "run.db"), "step": 4}
    again = NethookCallback(tmp_path / "other.db")
    second = trainer(tmp_path, again, max_steps=6)
    second.train(resume_from_checkpoint=str(tmp_path / "out/checkpoint-4"))
    assert again.path == tmp_path / "run.db"
    assert not (tmp_path / "other.db").exists()
    with nethook.open_run(tmp_path / "run.db") as run:
        assert run.ranks[0].last_step == 5
        assert len(run.info["sessions"]) == 2


def test_a_finding_can_stop_the_training(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = Finding("diverged", "error", "The loss has diverged.", "Lower the rate.")
    monkeypatch.setattr(Diagnosis, "findings", property(lambda self: (found,)))
    training = trainer(tmp_path, NethookCallback(tmp_path / "run.db", on_finding="stop"))
    training.train()
    assert training.state.global_step == 1


@pytest.mark.parametrize("text", ["", "[]", '{"run": 3, "step": 1}', '{"run": "a", "step": "b"}'])
def test_a_damaged_note_in_a_checkpoint_begins_a_new_run(tmp_path: Path, text: str) -> None:
    first = NethookCallback(tmp_path / "run.db")
    trainer(tmp_path, first, save_strategy="steps", save_steps=2, max_steps=2).train()
    (tmp_path / "out/checkpoint-2/nethook.json").write_text(text, encoding="utf-8")
    again = NethookCallback(tmp_path / "new.db")
    second = trainer(tmp_path, again, max_steps=3)
    second.train(resume_from_checkpoint=str(tmp_path / "out/checkpoint-2"))
    assert again.path == tmp_path / "new.db"
