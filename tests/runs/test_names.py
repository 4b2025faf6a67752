"""The names of what a watched run has in its file."""

from __future__ import annotations

import pytest

from nethook.runs import names


def constants():
    return {
        name: value
        for name, value in vars(names).items()
        if name.isupper() and isinstance(value, str)
    }


def test_no_two_quantities_or_events_share_a_name():
    events = set(names.EVENTS)
    quantities = [value for value in constants().values() if value not in events]
    assert len(quantities) == len(set(quantities))
    assert len(names.EVENTS) == len(events)
    assert len(names.CALLS) == len(set(names.CALLS))


def test_every_constant_of_the_events_is_listed():
    listed = list(constants())
    after = listed[listed.index("ORDER") :]
    assert {constants()[name] for name in after} == set(names.EVENTS)


def test_addresses_that_no_site_can_have():
    for address in (names.LOOP, names.BATCH, names.loss_address("train.py:42")):
        assert address.startswith("@")
    assert names.batch_address("") == names.BATCH
    assert names.batch_address("critic") == "@batch:critic"


def test_names_of_scalars():
    assert names.lr_name("0", 1) == "lr:0.1"
    assert names.loss_name("train.py:42") == "loss:train.py:42"
    assert names.fingerprint_name(0, 1) == names.PARAMS_FINGERPRINT
    parts = {names.fingerprint_name(index, 4) for index in range(4)}
    assert len(parts) == 4


@pytest.mark.parametrize(
    "name",
    [
        names.lr_name("0", 0),
        names.loss_name("total"),
        names.loss_name("total", "eval"),
        names.older_name(names.GRAD_NORM),
        names.fingerprint_name(0, 1),
        names.fingerprint_name(1, 2),
        names.FINGERPRINT,
        names.GRAD_NORM,
        names.GRAD_NORM_UNCLIPPED,
        names.UPDATE_RATIO,
    ],
)
def test_what_watching_writes_is_its_own(name):
    assert names.is_own_scalar(name)


@pytest.mark.parametrize("name", ["loss", "lr", "val_accuracy", "my loss:x", "grad_norm_2"])
def test_what_a_script_logs_is_not(name):
    assert not names.is_own_scalar(name)


def test_scalars_of_losses_and_of_what_is_older():
    for phase in ("train", "eval"):
        scalar = names.loss_name("train.py:42", phase)
        assert names.loss_of_scalar(scalar) == ("train.py:42", phase)
        assert names.loss_of_scalar(names.older_name(scalar)) is None
    for name in ("val_loss", "loss", names.FINGERPRINT, names.lr_name("0", 0)):
        assert names.loss_of_scalar(name) is None
        assert names.older_name(name) == ""
