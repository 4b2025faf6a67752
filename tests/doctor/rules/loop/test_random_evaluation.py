"""The rule `random-evaluation`: when it reports, and when it is a note."""

from __future__ import annotations

from tests.doctor.synthetic import Made

NAME = "evaluation repeats itself"


def test_dropout_that_is_active() -> None:
    made = Made().examined(NAME, differs=0.4, operation="F.dropout", p=0.5, lines=["net.py:7"])
    (finding,) = made.found("random-evaluation")
    assert finding.severity == "warning"
    assert "F.dropout (p=0.5) is active" in finding.message
    assert "training=self.training" in finding.fix
    assert finding.lines == ("net.py:7",)


def test_dropout_of_attention_has_another_fix() -> None:
    made = Made().examined(NAME, differs=0.4, operation="F.scaled_dot_product_attention", p=0.5)
    assert "dropout_p" in made.found("random-evaluation")[0].fix


def test_models_that_sample_get_a_note() -> None:
    (finding,) = Made().examined(NAME, "question", "why", differs=1.4).found("random-evaluation")
    assert finding.severity == "info"
    assert "draws random numbers" in finding.message


def test_inputs_that_differ_with_the_same_labels() -> None:
    made = Made().series("", "inputs", mean=[0.0] * 10, info={"dtype": "float32"})
    facts = {"kind": "equal", "source": "train.py:9", "same_labels": True}
    made.record(50, 100, 150, 199, name="eval", phase="eval", **facts, same_inputs=False)
    (finding,) = made.found("random-evaluation")
    assert (finding.severity, finding.lines) == ("info", ("train.py:9",))
    same = Made().series("", "inputs", mean=[0.0] * 10, info={"dtype": "float32"})
    same.record(50, 100, 150, 199, name="eval", phase="eval", **facts, same_inputs=True)
    assert not same.found("random-evaluation")
