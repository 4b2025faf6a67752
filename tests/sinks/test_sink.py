from __future__ import annotations

import pytest

from nethook.errors import OptionError
from nethook.sinks.sink import Sink


def test_options_are_checked():
    with pytest.raises(OptionError, match="`detail` must be one of few, all; got 'most'"):
        Sink(detail="most")  # type: ignore[arg-type]
    with pytest.raises(OptionError, match="`every` must be seconds, at least 0; got -1"):
        Sink(every=-1)


def test_all_calls_may_be_left_out(tmp_path):
    sink = Sink()
    sink.join()
    sink.scalars(0, {"a": 1.0})
    sink.end("fine", None)
    assert sink.detail == "few"
    assert not sink.wants_report
