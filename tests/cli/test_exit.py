"""How a command ends when something is wrong."""

from __future__ import annotations

import pytest
import typer

from nethook.cli.exit import errors_in_words
from nethook.errors import RunFileError
from tests.cli.command import run
from tests.figures.shared import training


def test_what_is_wrong_is_said_in_a_line(tmp_path):
    (tmp_path / "foreign.db").write_text("no run")
    for arguments, words in (
        (("report", tmp_path / "none.db"), "there is no run"),
        (("report", tmp_path / "foreign.db"), "foreign.db"),
        (("diff", training(), tmp_path / "none.db"), "there is no run"),
        (("export", training(), "--format", "xls"), "parquet, tensorboard; got 'xls'"),
        (
            ("export", training(), "--to", "out"),
            "`--format` must be one of csv, parquet, tensorboard; got none.",
        ),
    ):
        done = run(*arguments)
        assert done.exit_code == 2
        assert done.stdout == ""
        assert done.stderr.startswith(f"nethook {arguments[0]}: ")
        assert words in done.stderr
        assert len(done.stderr.splitlines()) == 1


def test_an_error_of_nethook_becomes_a_line_and_code_2(capsys):
    with pytest.raises(typer.Exit) as ended, errors_in_words("report"):
        raise RunFileError("no run here:\n\x1b[31mred")
    assert ended.value.exit_code == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err.startswith("nethook report: no run here:")
    assert len(printed.err.splitlines()) == 1
    assert "\x1b" not in printed.err


def test_an_error_of_anybody_else_keeps_its_traceback():
    with pytest.raises(ZeroDivisionError), errors_in_words("report"):
        1 / 0


def test_without_an_error_nothing_is_said(capsys):
    with errors_in_words("report"):
        pass
    assert capsys.readouterr() == ("", "")
