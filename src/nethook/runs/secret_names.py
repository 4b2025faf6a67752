"""Names of options whose values are secrets: `--hf-token`, `-p`, `db.password`, `WANDB_API_KEY`.

A name is read word by word, so that `--token` is a secret and `--tokenizer` is not.
"""

from __future__ import annotations

import re
from typing import Final


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


# A secret wherever the word stands in a name.
_SECRET: Final = _words(
    "apikey auth authorization bearer cookie cookies cred credential credentials creds dsn jwt "
    "login oauth otp pass passcode passphrase passwd password passwords pat pw pwd sas secret "
    "secrets sig signature webhook webhooks"
)
# Written together with other words: `mypassword`, `accesskey`.
_SECRET_PART: Final = re.compile(
    r"passw|passphrase|passcode|secret|credential|webhook|connectionstr|connstr|"
    r"(api|access|private|account|license|ssh|signing|encryption|auth|session)(key|token)"
)
# A secret unless one of the other words says that it counts or names something.
_SECRET_UNLESS: Final = {
    "token": _words(
        "bos budget cls context count dim drop dropout embed embedding end eos image img len "
        "length level limit mask max merge min mixer mixing n new num number pad padding per "
        "position prune pruning rate reduction sep shift size special start target total train "
        "type types unk vocab warmup"
    ),
    "key": _words(
        "batch bias cache column dict dim dims dropout head heads image input label mask metric "
        "model monitor n norm num output padding projection query size sort state target text "
        "value"
    ),
}
# Services that scripts name an option after, to be given their key: `--wandb KEY`.
_SERVICES: Final = _words(
    "aws azure clearml comet dagshub discord gcp github gitlab hf huggingface kaggle mlflow "
    "neptune openai slack telegram wandb"
)
_CAMEL: Final = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")


def is_secret_name(name: str) -> bool:
    """Whether the value of an option, override or variable with this name must not be kept."""
    bare = name.lstrip("-+~")
    if bare == "p":  # of mysql, docker login, sshpass, …
        return True
    spaced = _CAMEL.sub(" ", bare)
    words = [word for word in re.split(r"[^a-z0-9]+", spaced.lower()) if word]
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
