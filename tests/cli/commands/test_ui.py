"""`nethook ui`: what it serves and where, and what it refuses."""

from __future__ import annotations

from tests.cli.command import run


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
