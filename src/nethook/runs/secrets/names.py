"""Names of options whose values are secrets: `--hf-token`, `-p`, `db.password`, `WANDB_API_KEY`.

A name is read word by word, so that `--token` is a secret and `--tokenizer` is not.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


# A secret wherever the word stands in a name.
_SECRET: Final = _words(
    "2fa apikey auth authorization bearer cookie cookies cred credential credentials creds csrf "
    "cvc cvv dsn jwt login mfa mnemonic netrc oauth otp passcode passkey passphrase passwd "
    "password passwords pat psw pswd pw pwd salt sas secret secrets sig signature ssn tkn totp "
    "webhook webhooks"
)
# Written together with other words: `mypassword`, `accesskey`; or as several: `session-id`.
_SECRET_PART: Final = re.compile(
    r"passw|passphrase|passcode|passfile|secret|credential|webhook|connectionstr|connstr|"
    r"sessionid|seedphrase|(access|activation|recovery|verification)code|"
    r"(api|access|private|account|license|ssh|signing|encryption|auth|session)(key|token)"
)
# A secret unless one of the other words says that it counts or names something.
_SECRET_UNLESS: Final = {
    "token": _words(
        "acc accuracy audio bos budget class cls completion context count dim drop dropout embed "
        "embedding end eos frame global image img input latent len length level limit loss mask "
        "max merge min mixer mixing n new num number output pad padding patch per position prefix "
        "prompt prune pruning query rate reduction reg register seen sep shift size special "
        "speech start stop target text total train type types unk video visual vocab warmup"
    ),
    "key": _words(
        "batch bias cache column dict dim dims dropout frame frames head heads image input kv "
        "label mask metric model monitor n norm num output padding projection query size sort "
        "state target text value"
    ),
    "pass": _words("backward band first forward high low multi num one rate second single two"),
    "pin": _words("cpu cpus core cores host mem memory thread threads"),
}
# `hftoken`, `wandbkey`, `dbpass`, `rootpw` are two words each; `monkey` and `bypass` are one.
_COMPOUND: Final = re.compile(
    r"(?!(mon|tur|hot|don|whis|hoc|joc|lac)keys?$|(all|by|com|over|sur|tres|under)pass$)"
    r"([a-z0-9]+?)(tokens?|keys?|pass|pwd?)"
)
# Services that scripts name an option after, to be given their key: `--wandb KEY`.
_SERVICES: Final = _words(
    "aws azure clearml comet dagshub discord gcp github gitlab hf huggingface kaggle mlflow "
    "neptune openai slack telegram wandb"
)
_CAMEL: Final = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")


@lru_cache(maxsize=1024)
def is_secret_name(name: str) -> bool:
    """Whether the value of an option, override or variable with this name must not be kept."""
    bare = name.lstrip("-+~")
    if bare == "p":  # of mysql, docker login, sshpass, …
        return True
    spaced = _CAMEL.sub(" ", bare)
    words = [piece for word in re.split(r"[^a-z0-9]+", spaced.lower()) for piece in _parts(word)]
    if not words:
        return False
    if len(words) == 1 and words[0] in _SERVICES:
        return True
    if not _SECRET.isdisjoint(words) or _SECRET_PART.search("".join(words)):
        return True
    return any(
        {word, f"{word}s"} & set(words) and others.isdisjoint(words)
        for word, others in _SECRET_UNLESS.items()
    )


def _parts(word: str) -> list[str]:
    """The words that a word is made of; none of an empty one."""
    if word not in _SECRET and (match := _COMPOUND.fullmatch(word)):
        return [match[3], match[4]]
    return [word] if word else []
