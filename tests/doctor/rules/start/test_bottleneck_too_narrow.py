"""The rule `bottleneck-too-narrow`: when it reports, and when it does not."""

from __future__ import annotations

from tests.doctor.ill import bad, narrow_middle
from tests.doctor.synthetic import Made, falling

CODE = "bottleneck-too-narrow"


def test_one_unit_between_wide_layers() -> None:
    (finding,) = narrow_middle().found(CODE)
    assert finding.severity == "warning"
    assert finding.sites == ("a",)
    assert finding.message.startswith("`a` makes one number of its 7 inputs, and `b` makes 100")


def test_a_run_that_does_its_job_in_part() -> None:
    (finding,) = narrow_middle(bad(falling(200, end=1.4))).found(CODE)
    assert finding.severity == "info"
    assert not narrow_middle(bad(falling(200, end=0.4))).found(CODE)


def test_a_norm_between_them_has_statistics_of_its_own() -> None:
    made = narrow_middle(middle="batch_norm")
    made.info["ops"][1]["odd"] = True
    assert made.found(CODE)
    other = narrow_middle(middle="mul")
    other.info["ops"][1]["odd"] = True
    assert not other.found(CODE)


def with_a_way_around(made: Made) -> Made:
    """What enters the narrow layer is used behind it, too: a gate."""
    first, *others = made.info["ops"]
    ops = [{"site": "", "op": "relu", "from": [], "odd": False}, {**first, "from": [0]}]
    ops += [{**op, "from": [at + 1 for at in op["from"]]} for op in others]
    made.info["ops"] = [*ops, {"site": "", "op": "mul", "from": [0, 3], "odd": False}]
    return made


def test_a_gate_has_another_way() -> None:
    assert not with_a_way_around(narrow_middle()).found(CODE)
