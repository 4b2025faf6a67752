"""Values that may be kept of a command: whatever is not known to be harmless is not."""

from __future__ import annotations

import pytest

from nethook.runs.secrets.harmless import KNOWN_TOKEN, is_harmless, is_plain, is_readable

TOKENS = [
    "sk-abcdefghijklmnopqrstuvwx",
    "ghp_abcdefghijklmnopqrstuvwx",
    "hf_abcdefghijklmnopqrstuvwxyzabcdef",
    "AKIAABCDEFGHIJKL",
    "xoxb-1234567890",
    "eyJhbGciOiJIUzI1NiJ9.eyJzdWIi.c2ln",
]


@pytest.mark.parametrize(
    "value", ["0", "-3", "1e-3", "+.5", "3.", "1_000_000", "10%", "2j", "cuda:0", "cpu:12"]
)
def test_numbers_and_devices(value):
    assert is_plain(value)


@pytest.mark.parametrize(
    "value", ["adam", "resnet50", "bert-base-uncased", "ViT_B_16", "true", "mixed-precision", "a"]
)
def test_names_of_words_and_small_numbers(value):
    assert is_plain(value)
    assert is_readable(value)


@pytest.mark.parametrize(
    "value",
    [
        *(".", "", "%", "-", "a b", "name.", "hunter2!", "1" * 16, "x12345", "user@host"),
        *("0123456789abcdef", "deadbeefdeadbeefdeadbeef", "q7Zx9Lk2Vb5Nw8Rt1Yp"),
        "a-name-that-goes-on-for-more-than-thirty-two-characters",
    ],
)
def test_what_may_be_anything(value):
    assert not is_plain(value)


@pytest.mark.parametrize("token", TOKENS)
def test_tokens_of_services(token):
    assert KNOWN_TOKEN.search(token)
    assert not is_harmless(token)
    assert not is_harmless(f"adam,{token}")


def test_lists_are_harmless_where_every_entry_is():
    assert is_harmless("1,2,3")
    assert is_harmless('["adam", "sgd"]')
    assert is_harmless("(0.9,0.999)")
    assert not is_harmless("adam,,sgd")
    assert not is_harmless("adam,hunter2!")
    assert not is_harmless("[]")


def test_paths_that_exist(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert not is_harmless("data/train set.csv")
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "train set.csv").touch()
    assert is_harmless("data/train set.csv")
