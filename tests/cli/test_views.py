"""The commands report, diff and export."""

from __future__ import annotations

import shutil

from typer.testing import CliRunner

from nethook.cli.main import app
from tests.figures.shared import changed, training


def run(*arguments: object):
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


def test_a_report_is_written_beside_the_run_and_named(tmp_path):
    path = shutil.copy(training(), tmp_path / "mnist.db")
    done = run("report", path)
    assert (done.exit_code, done.stdout) == (0, f"{tmp_path / 'mnist.html'}\n")
    assert (tmp_path / "mnist.html").stat().st_size > 4_000_000
    done = run("report", path, "-o", tmp_path / "other.html")
    assert done.stdout == f"{tmp_path / 'other.html'}\n"


def test_a_report_is_opened_where_asked(tmp_path, monkeypatch):
    opened = []
    monkeypatch.setattr("webbrowser.open", opened.append)
    run("report", training(), "-o", tmp_path / "a.html", "--open")
    assert opened == [(tmp_path / "a.html").as_uri()]


def test_diff_exits_as_diff_does(tmp_path):
    same = run("diff", training(), training())
    assert same.exit_code == 0
    assert "They are equal" in same.stdout
    other = run("diff", training(), changed(), "--to", tmp_path / "d.html")
    assert other.exit_code == 1
    assert "They part at step 61" in other.stdout
    assert other.stdout.endswith(f"{tmp_path / 'd.html'}\n")
    assert (tmp_path / "d.html").exists()


def test_export_names_its_files(tmp_path):
    done = run("export", training(), "--format", "csv", "--to", tmp_path / "out")
    assert done.exit_code == 0
    assert done.stderr == ""
    assert done.stdout.splitlines()[0] == str(tmp_path / "out" / "series.csv")


def test_the_words_of_0_1_still_work(tmp_path):
    done = run("export", training(), "--to", "csv", "-o", tmp_path / "out")
    assert done.exit_code == 0
    assert done.stderr == "nethook export: --to csv is now --format csv.\n"
    assert done.stdout.splitlines()[0] == str(tmp_path / "out" / "series.csv")
    for words in ("--output", "-o", "--to"):
        assert run("report", training(), words, tmp_path / "a.html").exit_code == 0
    old, new = run("check", training()), run("diagnose", training())
    assert (old.exit_code, old.stdout) == (new.exit_code, new.stdout)
    assert "check" not in run("--help").stdout


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
        assert done.stderr.startswith("nethook: ")
        assert words in done.stderr
        assert len(done.stderr.splitlines()) == 1


def test_help_names_the_commands():
    shown = run("--help").stdout
    for name in ("report", "diff", "export"):
        assert name in shown
        assert run(name, "--help").exit_code == 0


def test_the_page_of_a_folder_that_is_not_there(tmp_path):
    done = run("ui", tmp_path / "none")
    assert done.exit_code == 2
    assert "there is no folder or run" in done.stderr


def test_the_page_says_its_address(tmp_path, monkeypatch):
    asked = {}

    def serve(place, **options):
        asked.update(place=place, **options)
        options["say"]("http://127.0.0.1:8420/")

    monkeypatch.setattr("nethook.page.live.serving.serve", serve)
    monkeypatch.chdir(tmp_path)
    done = run("ui", "--port", 9000, "--open")
    assert (done.exit_code, done.stdout) == (0, "nethook ui: http://127.0.0.1:8420/\n")
    assert (str(asked["place"]), asked["port"], asked["show"]) == (".", 9000, True)
    assert asked["host"] == "127.0.0.1"
    assert (asked["with_token"], asked["token_file"]) == (True, None)
    (tmp_path / "runs").mkdir()
    run("ui")
    assert (str(asked["place"]), asked["port"]) == ("runs", None)
    run("ui", "--no-token")
    assert (asked["with_token"], asked["token_file"]) == (False, None)
    run("ui", "--token-file", "token")
    assert (asked["with_token"], str(asked["token_file"])) == (True, "token")
    done = run("ui", "--token-file", "token", "--no-token")
    assert (done.exit_code, done.stdout) == (2, "")
    assert "exclude each other" in done.stderr


def test_a_token_file_that_others_can_read_is_named_in_a_line(tmp_path):
    (tmp_path / "token").write_text("x" * 43)
    (tmp_path / "token").chmod(0o644)
    done = run("ui", tmp_path, "--token-file", tmp_path / "token")
    assert (done.exit_code, done.stdout) == (2, "")
    assert "its mode is 0644. Type: chmod 600" in done.stderr
    assert len(done.stderr.splitlines()) == 1
