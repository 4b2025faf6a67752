"""All experiments on one rehearsal: each fails alone, and time is kept."""

from __future__ import annotations

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from nethook.addresses.inputs import Inputs
from nethook.examining.examine import OUT_OF_TIME, every_experiment, examine, wants_trained
from nethook.examining.experiment import NotReplayableError, fine
from nethook.examining.limits import Deadline
from nethook.examining.rehearsal import Rehearsal
from nethook.examining.rehearse import rehearse


class Fine:
    name = "fine"

    def applies(self, rehearsal):
        return None

    def run(self, rehearsal):
        return fine(self, loss=float(rehearsal.run().loss))


class DoesNotApply(Fine):
    name = "does not apply"

    def applies(self, rehearsal):
        return "there are no tokens"


class Fails(Fine):
    name = "fails"

    def run(self, rehearsal):
        raise ValueError("of our own")


class CannotRun(Fine):
    name = "cannot run"

    def run(self, rehearsal):
        raise NotReplayableError("its forward prints")


class Late(Fine):
    name = "late"

    def run(self, rehearsal):
        rehearsal.deadline = Deadline(0.0)
        return super().run(rehearsal)


@pytest.fixture
def rehearsal() -> Rehearsal:
    x, y = torch.randn(4, 5), torch.tensor([0, 1, 2, 0])
    return rehearse(nn.Linear(5, 3), Inputs((x,)), lambda output: F.cross_entropy(output, y))


def test_each_fails_alone(rehearsal):
    examined = examine(rehearsal, [Fails(), DoesNotApply(), CannotRun(), Fine()])
    told = {result.experiment: (result.outcome, result.reason) for result in examined.results}
    assert told == {
        "fails": ("failed", "ValueError: of our own"),
        "does not apply": ("not applicable", "there are no tokens"),
        "cannot run": ("not applicable", "its forward prints"),
        "fine": ("fine", ""),
    }
    assert examined.late == ()
    assert examined.seconds >= sum(result.seconds for result in examined.results) > 0


def test_what_has_no_time_left_may_come_later(rehearsal):
    late, after = Late(), Fine()
    examined = examine(rehearsal, [late, after, DoesNotApply()], deadline=Deadline(10.0, 10.0))
    assert examined.late == (late, after)
    assert [result.reason for result in examined.results[:2]] == [OUT_OF_TIME] * 2
    assert examined.results[2].reason == "there are no tokens"


def test_no_time_at_all(rehearsal):
    experiment = Fine()
    examined = examine(rehearsal, [experiment], deadline=Deadline(0.0))
    assert examined.results == ()
    assert examined.late == (experiment,)
    assert examined.reason


def test_those_that_there_are():
    names = [experiment.name for experiment in every_experiment()]
    assert len(set(names)) == len(names)
    assert "what the target is" in names[:2]  # it runs nothing unless target and input agree
    assert names[-1] == "it can learn at all"
    assert not wants_trained(Fine())
