"""Which call made a node: the innermost that was running, against looking at all of them."""

from hypothesis import given
from hypothesis import strategies as st

from nethook.tracing.autograd.provenance import Makers, Stretch


@st.composite
def calls(draw: st.DrawFn) -> list[Stretch]:
    """Calls as one thread makes them: each inside another or after it, some making nothing."""
    found: list[Stretch] = []
    at = 0

    def call(depth: int) -> None:
        nonlocal at
        begin, number = at, len(found)
        found.append(Stretch(0, 0, "", None, False))  # its place: outer ones come first
        at += draw(st.integers(0, 2))
        for _ in range(draw(st.integers(0, 2)) if depth < 4 else 0):
            call(depth + 1)
            at += draw(st.integers(0, 2))
        found[number] = Stretch(begin, at, f"call {number}", None, False)

    for _ in range(draw(st.integers(1, 3))):
        call(0)
        at += draw(st.integers(0, 1))
    return [each for each in found if each.end > each.begin]


@given(calls())
def test_it_is_the_innermost_call(found: list[Stretch]) -> None:
    makers = Makers(found)
    for made in range(max((each.end for each in found), default=0) + 2):
        around = [each for each in found if each.begin <= made < each.end]
        # Of calls that made the same nodes the later one is inside.
        expected = around[-1].address if around else None
        assert makers.at(made) == (expected, None)


def test_an_operation_is_inside_a_module_that_made_the_same_nodes() -> None:
    module, op = Stretch(3, 5, "fc", 1, False), Stretch(3, 5, "fc/linear#0", None, True)
    for both in ([module, op], [op, module]):
        assert Makers(both).at(4) == ("fc/linear#0", None)
    assert Makers([module]).at(4) == ("fc", 1)
    assert Makers([]).at(4) == (None, None)
