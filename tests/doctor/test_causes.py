"""Root cause over symptom."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from nethook.doctor.causes import root_causes
from nethook.doctor.finding import Evidence, Finding, Severity
from nethook.doctor.rule import Cause
from nethook.doctor.signals.zero_gradients import ZEROS


def finding(code: str, first: int = 0, severity: Severity = "error") -> Finding:
    return Finding(code, severity, "what", "how", first_step=first)


def codes(found: list[Finding]) -> list[tuple[str, list[str]]]:
    return [(each.code, [below.code for below in each.consequences]) for each in found]


def test_what_is_lower_and_not_earlier_is_a_consequence() -> None:
    found = root_causes(
        [
            (Cause.SYMPTOM, finding("dead-units", 40)),
            (Cause.LOOP, finding("missing-zero-grad", 1)),
            (Cause.SETTINGS, finding("learning-rate-too-high", 5)),
        ]
    )
    assert codes(found) == [("missing-zero-grad", ["learning-rate-too-high", "dead-units"])]


def test_what_begins_earlier_stands_by_itself() -> None:
    early = [
        (Cause.SYMPTOM, finding("dead-units", 0)),
        (Cause.SETTINGS, finding("learning-rate-too-high", 90)),
    ]
    assert codes(root_causes(early)) == [("learning-rate-too-high", []), ("dead-units", [])]
    assert codes(root_causes(early, slack=100)) == [("learning-rate-too-high", ["dead-units"])]


def test_what_an_early_examination_shows_explains_what_began_just_before_it() -> None:
    symptom = (Cause.SYMPTOM, finding("dead-units", 0))
    early = (Cause.LOSS, finding("target-misaligned", 12))
    assert codes(root_causes([symptom, early])) == [("target-misaligned", ["dead-units"])]
    late = (Cause.LOSS, finding("target-misaligned", 100))
    assert len(root_causes([symptom, late])) == 2
    other = (Cause.LOSS, finding("loss-broadcast", 12))  # a record is made at every loss
    assert len(root_causes([symptom, other])) == 2


def test_what_makes_gradients_zero_is_their_cause() -> None:
    zeros = Finding("no-gradient", "warning", "", "", evidence={ZEROS: Evidence(2, 1)})
    softmax = (Cause.LOSS, finding("softmax-over-one", 2))
    found = root_causes([(Cause.LOOP, zeros), softmax, (Cause.SYMPTOM, finding("dead-units", 0))])
    assert codes(found) == [("softmax-over-one", ["no-gradient", "dead-units"])]


def test_a_loss_that_gets_a_softmax_of_one_score_has_one_cause() -> None:
    softmax = (Cause.LOSS, finding("softmax-over-one", 2, "warning"))
    loss = (Cause.LOSS, finding("output-misfits-loss", 0))
    assert codes(root_causes([softmax, loss])) == [("output-misfits-loss", ["softmax-over-one"])]


def test_information_explains_nothing() -> None:
    found = root_causes(
        [
            (Cause.DATA, finding("repeated-batch", 0, "info")),
            (Cause.SYMPTOM, finding("overfitting", 50, "warning")),
        ]
    )
    assert codes(found) == [("overfitting", []), ("repeated-batch", [])]


def test_not_learning_is_said_when_nothing_else_is() -> None:
    rest = (Cause.REST, finding("not-learning", 0))
    assert codes(root_causes([rest])) == [("not-learning", [])]
    late = (Cause.LOOP, finding("scheduler-collapse", 100))
    assert codes(root_causes([rest, late])) == [("scheduler-collapse", ["not-learning"])]


def test_a_symptom_may_explain_another() -> None:
    found = root_causes(
        [
            (Cause.SYMPTOM, finding("class-collapse", 10)),
            (Cause.SYMPTOM, finding("dead-units", 10)),
        ]
    )
    assert codes(found) == [("dead-units", ["class-collapse"])]


@given(
    st.lists(
        st.tuples(
            st.sampled_from(list(Cause)),
            st.builds(
                finding,
                st.sampled_from(["a", "b", "dead-units", "class-collapse"]),
                st.integers(0, 100),
                st.sampled_from(["info", "warning", "error"]),
            ),
        ),
        max_size=8,
    )
)
def test_nothing_is_lost_and_nothing_is_doubled(found: list[tuple[Cause, Finding]]) -> None:
    roots = root_causes(found)
    told = [each.code for root in roots for each in (root, *root.consequences)]
    assert sorted(told) == sorted(each.code for _, each in found)


def test_of_an_explosion_and_a_nan_the_first_is_the_cause() -> None:
    def told(explodes: int, nan: int) -> list[tuple[str, list[str]]]:
        both = [
            (Cause.SYMPTOM, finding("non-finite", nan)),
            (Cause.SYMPTOM, finding("exploding-gradient", explodes)),
        ]
        assert codes(root_causes(both, slack=5)) == codes(root_causes(both[::-1], slack=5))
        return codes(root_causes(both, slack=5))

    # The logarithm of a zero at the first step, and a loss near a pole of it from then on.
    assert told(explodes=3, nan=0) == [("non-finite", ["exploding-gradient"])]
    # A network that explodes until its type has no larger number.
    assert told(explodes=3, nan=12) == [("exploding-gradient", ["non-finite"])]
    assert told(explodes=3, nan=3) == [("exploding-gradient", ["non-finite"])]
    # What lies above both may have been dated a little late.
    above = [
        (Cause.SETTINGS, finding("learning-rate-too-high", 5)),
        (Cause.SYMPTOM, finding("non-finite", 3)),
    ]
    assert codes(root_causes(above, slack=5)) == [("learning-rate-too-high", ["non-finite"])]


def start(growth: float, loss: float) -> Finding:
    evidence = {
        "change of the signal over depth": Evidence(growth, 30),
        "first loss by the usual one": Evidence(loss, 10),
    }
    return Finding("bad-init-scale", "warning", "what", "how", evidence=evidence)


def test_settings_come_before_a_start_that_is_merely_odd() -> None:
    rate = (Cause.SETTINGS, finding("learning-rate-too-high", 2))
    dead = (Cause.SYMPTOM, finding("dead-units", 20))

    def told(growth: float, loss: float) -> list[tuple[str, list[str]]]:
        return codes(root_causes([(Cause.START, start(growth, loss)), rate, dead], slack=5))

    assert told(50, 1) == [("learning-rate-too-high", ["bad-init-scale", "dead-units"])]
    # A start that is ill by itself: a first loss that no fresh network has, a signal that is lost.
    assert told(50, 12) == [("bad-init-scale", ["learning-rate-too-high", "dead-units"])]
    assert told(1e6, 0) == [("bad-init-scale", ["learning-rate-too-high", "dead-units"])]
    alone = root_causes([(Cause.START, start(50, 1)), dead])
    assert codes(alone) == [("bad-init-scale", ["dead-units"])]
