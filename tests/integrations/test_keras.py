"""The callback in a real `fit` of Keras on torch."""

from __future__ import annotations

import os
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

os.environ.setdefault("KERAS_BACKEND", "torch")
keras = pytest.importorskip("keras", reason="Keras is in the environment of `make trainers`.")

import numpy as np  # noqa: E402
import torch  # noqa: E402

import nethook  # noqa: E402
from nethook.doctor.finding import Finding  # noqa: E402
from nethook.errors import OptionError  # noqa: E402
from nethook.keras import NethookCallback  # noqa: E402
from nethook.watching.diagnosis import Diagnosis  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore")  # Keras has advice of its own

X = np.random.default_rng(0).normal(size=(32, 4)).astype("float32")
Y = (X.sum(1) > 0).astype("int64")


def made(*, functional: bool = False, width: int = 8) -> Any:
    keras.backend.clear_session()  # layers are named as those of a new process
    keras.utils.set_random_seed(0)
    first, *rest = (
        keras.Input((4,)), keras.layers.Dense(width, activation="relu"), keras.layers.Dense(2)
    )  # fmt: skip
    if functional:
        model = keras.Model(first, rest[1](rest[0](first)))
    else:
        model = keras.Sequential([first, *rest])
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(optimizer=keras.optimizers.Adam(1e-2), loss=loss)
    return model


def fit(model: Any, *callbacks: Any, **options: Any) -> Any:
    known = {"epochs": 3, "batch_size": 8, "verbose": 0, "validation_data": (X, Y), **options}
    return model.fit(X, Y, callbacks=[*callbacks], **known).history


def test_a_training_is_one_run_with_the_trainers_numbers(tmp_path: Path) -> None:
    callback = NethookCallback(tmp_path / "run.db")
    model = made()
    history = fit(model, callback)
    assert callback.path == tmp_path / "run.db"
    assert not nethook.audit(model).ours
    with nethook.open_run(tmp_path / "run.db") as run:
        assert run.info["totals"]["steps"] == 12
        assert run.scalars["trainer/val_loss"].value.tolist() == pytest.approx(history["val_loss"])
        assert run.scalars["trainer/loss"].value.tolist() == pytest.approx(history["loss"])
        assert run.scalars["trainer/epoch"].value.tolist() == [0, 1, 2]
        # A step without an optimizer of torch's is over when the next one begins.
        assert run.scalars["trainer/epoch"].step.tolist() == [3, 7, 11]
        # What nethook saw itself is what Keras has, to the rounding of float32.
        assert run.loss().between(8, 11).mean == pytest.approx(history["loss"][-1], rel=1e-5)
        assert run.loss(phase="eval").last == pytest.approx(history["val_loss"][-1], rel=1e-5)


@pytest.mark.parametrize("functional", [False, True])
def test_every_layer_is_followed(tmp_path: Path, functional: bool) -> None:
    model = made(functional=functional)
    fit(model, NethookCallback(tmp_path / "run.db", budget=None))
    with nethook.open_run(tmp_path / "run.db") as run:
        kept = {(info.address, info.quantity) for info in run.catalogue}
        hidden, last = (layer.name for layer in model.layers if layer.weights)
        for name in (hidden, last):
            assert {(name, "outputs"), (name, "grads")} <= kept
            assert run.series(name, "outputs").seen.sum() == 12
        assert run.series(hidden, "outputs")["min"].min() == 0  # behind the relu
        assert run.units(hidden).active.shape[-1] == 8


@pytest.mark.parametrize("functional", [False, True])
def test_weights_and_updates_are_recorded(tmp_path: Path, functional: bool) -> None:
    model = made(functional=functional)
    layer = next(layer for layer in model.layers if layer.weights)
    held: list[Any] = []
    keep = keras.callbacks.LambdaCallback(
        on_train_batch_end=lambda batch, logs: held.append(layer.get_weights()[0].copy())
    )
    fit(model, keep, NethookCallback(tmp_path / "run.db", budget=None))
    with nethook.open_run(tmp_path / "run.db") as run:
        moved = [after - before for before, after in pairwise(held)]
        # The first step is over before it is known that weights move without an optimizer.
        for quantity, expected in (("params", held[:-1]), ("updates", moved)):
            series = run.series(f"{layer.name}.kernel", quantity)
            assert series.seen.sum() == len(expected)
            total = series.total()
            assert total["mean"] == pytest.approx(np.mean(expected), rel=1e-4)
            assert total["max"] == pytest.approx(np.max(expected), rel=1e-4)
        assert run.series(f"{layer.name}.bias", "param_grads").seen.sum() == 11
        sites = {site.address: site.info for site in run.sites}
        assert set(sites[layer.name]["parameters"]) == {
            f"{layer.name}.kernel", f"{layer.name}.bias"
        }  # fmt: skip
        norms = run.scalars["update_ratio"]
        assert norms.step.tolist() == list(range(1, 12))


def test_layers_are_found_by_name() -> None:
    model = made(functional=True)
    hidden, _ = (layer for layer in model.layers if layer.weights)
    found = nethook.features(model, torch.from_numpy(X), at=hidden.name)
    expected = keras.Model(model.inputs, hidden.output).predict(X, verbose=0)
    assert found.numpy() == pytest.approx(expected, abs=1e-6)


def test_a_training_goes_on_in_its_run(tmp_path: Path) -> None:
    model = made(functional=True)
    fit(model, NethookCallback(tmp_path / "run.db"), epochs=1)
    model.save(tmp_path / "model.keras")
    fit(model, epochs=1)  # steps that the checkpoint does not have
    loaded = keras.models.load_model(tmp_path / "model.keras")
    fit(loaded, NethookCallback(tmp_path / "run.db"), epochs=3, initial_epoch=1)
    with nethook.open_run(tmp_path / "run.db") as run:
        assert len(run.info["sessions"]) == 2
        assert run.ranks[0].last_step == 11
        assert run.scalars["trainer/epoch"].value.tolist() == [0, 1, 2]


def test_a_sequential_that_names_its_weights_otherwise_goes_on_too(tmp_path: Path) -> None:
    model = made()
    fit(model, NethookCallback(tmp_path / "run.db"), epochs=1)
    model.save(tmp_path / "model.keras")
    loaded = keras.models.load_model(tmp_path / "model.keras")
    paths = [[weight.path for weight in each.weights] for each in (model, loaded)]
    assert paths[0] != paths[1]  # of which the names of layers are the part that stays
    fit(loaded, NethookCallback(tmp_path / "run.db"), epochs=1)
    with nethook.open_run(tmp_path / "run.db") as run:
        assert len(run.info["sessions"]) == 2
        assert run.ranks[0].last_step == 7


def test_another_model_that_has_trained_before_has_another_run(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    fit(made(), NethookCallback(tmp_path / "run.db"), epochs=1)
    other = made(width=16)
    fit(other, epochs=1)
    callback = NethookCallback(tmp_path / "run.db")
    fit(other, callback, epochs=1)
    assert callback.path is not None
    assert callback.path.name.startswith("run-")
    assert "this training does not go on in" in capsys.readouterr().err


def test_a_backup_that_is_restored_goes_on_in_its_run(tmp_path: Path) -> None:
    def backup() -> Any:
        return keras.callbacks.BackupAndRestore(tmp_path / "backup", delete_checkpoint=False)

    fit(made(), NethookCallback(tmp_path / "run.db"), backup(), epochs=2)
    fit(made(), NethookCallback(tmp_path / "run.db"), backup(), epochs=3)
    with nethook.open_run(tmp_path / "run.db") as run:
        assert run.ranks[0].last_step == 11


def test_a_finding_can_stop_the_training(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = Finding("diverged", "error", "The loss has diverged.", "Lower the rate.")
    monkeypatch.setattr(Diagnosis, "findings", property(lambda self: (found,)))
    model = made()
    fit(model, NethookCallback(tmp_path / "run.db", on_finding="stop"))
    assert int(model.optimizer.iterations) < 12


def test_another_backend_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(keras.backend, "backend", lambda: "jax")
    with pytest.raises(OptionError, match="needs torch as the backend of Keras; it is 'jax'"):
        NethookCallback().on_train_begin()
