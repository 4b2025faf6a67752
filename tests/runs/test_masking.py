"""Secrets on a command line never reach the file."""

from __future__ import annotations

import pytest

from nethook.runs.masking import masked_command, masked_text

SECRET = "hunter2hunter2"


@pytest.mark.parametrize(
    "arguments",
    [
        ["--password", SECRET],
        ["--password=" + SECRET],
        ["--db-password", SECRET],
        ["--api-key", SECRET],
        ["--api_key=" + SECRET],
        ["--apikey=" + SECRET],
        ["--hf_token", SECRET],
        ["--hf-token=" + SECRET],
        ["--token", SECRET],
        ["-token", SECRET],
        ["--wandb-key", SECRET],
        ["--aws_secret_access_key=" + SECRET],
        ["--client-secret", SECRET],
        ["--auth", SECRET],
        ["--credentials", SECRET],
        ["--private-key", SECRET],
        ["logger.wandb.api_key=" + SECRET],
        ["+trainer.secret=" + SECRET],
        ["--dsn", SECRET],
        ["--passphrase", SECRET],
        [f"--data=s3://user:{SECRET}@host/bucket"],
        [f"postgres://me:{SECRET}@host/db"],
        [f"https://host/x?token={SECRET}&y=1"],
        ["-H", f"Authorization: Bearer {SECRET}"],
    ],
)
def test_what_is_named_as_a_secret_is_masked(arguments: list[str]) -> None:
    shown = masked_command(["python", "train.py", *arguments, "--lr", "0.1"])
    assert SECRET not in " ".join(shown)
    assert "***" in " ".join(shown)
    assert shown[:2] == ["python", "train.py"]
    assert shown[-2:] == ["--lr", "0.1"]


@pytest.mark.parametrize(
    "value",
    [
        "sk-abcdefghijklmnopqrstuvwx",
        "ghp_abcdefghijklmnopqrstuvwxyz0123456789",
        "hf_abcdefghijklmnopqrstuvwx",
        "AKIAIOSFODNN7EXAMPLE",
        "xoxb-123456789012-abcdef",
        "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.abc",
        "0123456789abcdefGHIJKLMNOPQRSTUVWXYZ0123456789",
        "-----BEGIN RSA PRIVATE KEY-----\nMIIE",
    ],
)
def test_what_looks_like_a_secret_is_masked_wherever_it_stands(value: str) -> None:
    for arguments in ([value], [f"--run-name={value}"], ["--x", value]):
        assert value not in " ".join(masked_command(arguments))


@pytest.mark.parametrize(
    "arguments",
    [
        ["--tokenizer", "gpt2"],
        ["--max-tokens", "512"],
        ["--max_tokens=512"],
        ["--tokens-per-batch", "4096"],
        ["--keyboard", "us"],
        ["--monkey", "george"],
        ["--lr=0.001"],
        ["--commit", "0123456789abcdef0123456789abcdef01234567"],
        ["--data", "/data/imagenet/train/a-long-path-with-numbers-0123456789-and-more"],
        ["https://host/data?split=train"],
        ["--author", "me"],
        ["-c", "configs/resnet50_imagenet.yaml"],
    ],
)
def test_what_is_no_secret_is_kept(arguments: list[str]) -> None:
    assert masked_command(arguments) == arguments


def test_an_option_after_a_secret_without_a_value_is_kept() -> None:
    assert masked_command(["--password", "--lr", "0.1"]) == ["--password", "--lr", "0.1"]


def test_a_text_is_masked_in_place() -> None:
    assert masked_text("git clone https://me:pw@host/x") == "git clone https://***@host/x"
