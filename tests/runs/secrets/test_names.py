"""Names are read word by word: what holds a secret, and what only sounds like it."""

from __future__ import annotations

import pytest

from nethook.runs.secrets.names import is_secret_name


@pytest.mark.parametrize(
    "name",
    [
        *("-p", "p", "--password", "--db.password", "DB_PASSWD", "mypassword", "rootpw", "dbpass"),
        *("--hf-token", "hftoken", "hfToken", "HF_TOKEN", "tokens", "WANDB_API_KEY", "apiKey"),
        *("wandbkey", "--api.key", "session-id", "connection_string", "--aws", "wandb", "sas"),
        *("--private-key", "sshKey", "clientSecret", "two.factor.otp", "recovery_code", "+token"),
    ],
)
def test_secret(name):
    assert is_secret_name(name)


@pytest.mark.parametrize(
    "name",
    [
        *("", "--", "-", "--lr", "--tokenizer", "max_tokens", "num-tokens", "pad_token", "n_key"),
        *(
            "--key-dim",
            "value.key",
            "monkey",
            "--turkey",
            "hotkeys",
            "bypass",
            "--compass",
            "author",
        ),
        *("forward-pass", "pin_memory", "passes", "--wandb-project", "keyboard", "--hfmodel"),
        *("tokensPerBatch", "passage", "keep", "--batch-size"),
    ],
)
def test_not_secret(name):
    assert not is_secret_name(name)


@pytest.mark.parametrize("form", ["api_key", "api-key", "api.key", "apiKey", "APIKey", "API KEY"])
def test_however_words_are_joined(form):
    assert is_secret_name(form)
    assert is_secret_name(f"--{form}")
    assert is_secret_name(f"my_{form}_2")
