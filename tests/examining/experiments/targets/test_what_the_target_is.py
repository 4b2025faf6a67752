"""What the target is."""

from __future__ import annotations

import torch

from nethook.examining.experiments.targets.what_the_target_is import WhatTheTargetIs
from tests.examining.experiments.healthy import HEALTHY
from tests.examining.experiments.ill import ILL


def test_shifted_twice() -> None:
    torch.manual_seed(0)
    result = WhatTheTargetIs().run(ILL["labels_shifted_twice_by_a_library"][1]().rehearsal())
    assert (result.outcome, result.facts["what"], result.facts["ahead"]) == ("found", "shifted", 2)


def test_not_shifted() -> None:
    torch.manual_seed(0)
    result = WhatTheTargetIs().run(ILL["labels_not_shifted"][1]().rehearsal())
    assert (result.outcome, result.facts["what"]) == ("found", "input")


def test_a_place_of_the_input() -> None:
    window = WhatTheTargetIs().run(ILL["window_holds_the_target"][1]().rehearsal())
    assert (window.outcome, window.facts["place"], window.facts["places"]) == ("found", 23, 24)
    table = WhatTheTargetIs().run(ILL["table_holds_the_target"][1]().rehearsal())
    assert (table.outcome, table.facts["place"], table.facts["places"]) == ("found", 3, 9)


def test_to_remember_may_be_the_task() -> None:
    result = WhatTheTargetIs().run(HEALTHY["recall_of_the_first_value"]().rehearsal())
    assert result.outcome == "question"


def test_strictly_before_is_as_it_should_be() -> None:
    result = WhatTheTargetIs().run(HEALTHY["masked_convolution_of_pixels"]().rehearsal())
    assert (result.outcome, result.facts["ahead"]) == ("fine", 1)


def test_where_it_does_not_apply() -> None:
    why = WhatTheTargetIs().applies(HEALTHY["forecast_of_the_next_value"]().rehearsal())
    assert why == "the target is no part of the inputs"
