"""What is kept of a command: an allow-list. Secrets never reach the file."""

from __future__ import annotations

import base64
import hashlib
import random
import shlex
import string
import uuid
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nethook.runs.secrets.harmless import is_harmless
from nethook.runs.secrets.masking import (
    MASK,
    masked_arguments,
    masked_setting,
    masked_text,
    masked_texts,
)
from nethook.runs.secrets.names import is_secret_name

SECRET = "hunter2hunter2"
HEX = "0123456789abcdef0123456789abcdef01234567"  # as the keys of wandb were for years
RANDOM = "wJalrXUtnFEMIbPxRfiCYzEXAMPLEKEYq3kD8sLm"


@pytest.mark.parametrize(
    "arguments",
    [
        ["--password", SECRET],
        ["--password=" + SECRET],
        ["--db-password", SECRET],
        ["--api-key", SECRET],
        ["--api_key=" + SECRET],
        ["--apikey=" + SECRET],
        ["--apiKey", SECRET],
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
        ["--pw", SECRET],
        ["-pw", SECRET],
        ["--pat", SECRET],
        ["--passcode", SECRET],
        ["--login", f"me:{SECRET}"],
        [f"me:{SECRET}"],
        ["--hf-tokens=" + SECRET],
        ["--tokens", "one", SECRET, "three"],
        ["--webhook", SECRET],
        ["-p", SECRET],
        ["-p" + SECRET],
        ["-p=" + SECRET],
        ["-p" + "hun-ter2" + SECRET],
        ["--password", "-" + SECRET],
        ["--wandb", SECRET],
        ["--mypasswords", SECRET],
        ["--config", f'{{"api_key": "{SECRET}"}}'],
        [f"--config={{'lr': 1, 'api_key': '{SECRET}'}}"],
        [f"--env=DB_PASSWORD={SECRET}"],
        ["-e", f"DB_PASSWORD={SECRET}"],
        ["--note", f"the word is {SECRET}"],
    ],
    ids=" ".join,
)
def test_what_is_named_as_a_secret_is_masked(arguments: list[str]) -> None:
    shown = masked_arguments(["train.py", *arguments, "--lr", "0.1"])
    assert SECRET not in " ".join(shown)
    assert MASK in " ".join(shown)
    assert shown[0] == "train.py"
    assert shown[-2:] == ["--lr", "0.1"]


# Options of real tools, as their manuals have them, with the value that must not be seen.
LEAKS = {
    "wandb login": (f"--wandb {HEX}", HEX),
    "wandb, new keys": (f"--key wandb_v1_{RANDOM}", RANDOM),
    "wandb, in the environment": (f"env WANDB_API_KEY={HEX} x", HEX),
    "huggingface-cli": (f"login --add-to-git-credential --token hf_{RANDOM}", RANDOM),
    "hugging face, hub_token": (f"--hub_token=hf_{RANDOM}", RANDOM),
    "hugging face, by form alone": (f"--use hf_{RANDOM[:34]}", RANDOM[:34]),
    "aws access key": ("--aws-id AKIAIOSFODNN7EXAMPLE", "AKIAIOSFODNN7EXAMPLE"),
    "aws secret key": (f"configure set aws_secret_access_key {RANDOM}", RANDOM),
    "aws session": (f"--session-token={RANDOM}", RANDOM),
    "gcloud": (f"--access-token-file /home/me/{RANDOM[:9]}", RANDOM[:9]),
    "google api": (f"--google AIza{RANDOM[:35]}", RANDOM[:35]),
    "google oauth": (f"--bearer ya29.{RANDOM}", RANDOM),
    "mlflow": (f"--tracking-uri https://me:{SECRET}@mlflow.example", SECRET),
    "comet": (f"--api-key {RANDOM[:25]}", RANDOM[:25]),
    "comet, workspace first": (f"--comet {RANDOM[:25]}", RANDOM[:25]),
    "neptune": (f"--neptune-api-token eyJhcGlfYWRkcmVzcyI6{RANDOM}", RANDOM),
    "slack webhook": (f"--notify https://hooks.slack.com/services/T000/B000/{RANDOM}", RANDOM),
    "slack token": (f"--slack xoxb-1234-{RANDOM[:20]}", RANDOM[:20]),
    "discord webhook": (f"--to https://discord.com/api/webhooks/12/{RANDOM}", RANDOM),
    "telegram bot": (f"--chat 110201543:{RANDOM[:35]}", RANDOM[:35]),
    "azure sas": (
        f"--blob 'https://a.blob.core.windows.net/c?sv=2022-11-02&sig={RANDOM}%3D'", RANDOM,
    ),
    "azure connection": (
        f"--connection-string 'AccountName=a;AccountKey={RANDOM}==;EndpointSuffix=x'", RANDOM,
    ),
    "azure sas token": (f"--sas-token 'sv=1&sig={RANDOM[:9]}'", RANDOM[:9]),
    "postgres": (f"--storage postgresql+psycopg2://optuna:{SECRET}@db/optuna", SECRET),
    "psql": (f"psql 'host=db user=me password={SECRET}'", SECRET),
    "mysql": (f"-u root -p{SECRET}", SECRET),
    "redis": (f"--broker redis://:{SECRET}@host:6379/0", SECRET),
    "docker login": (f"login -u me -p {SECRET}", SECRET),
    "docker token": (f"--use dckr_pat_{RANDOM[:20]}", RANDOM[:20]),
    "kaggle": (f"--kaggle {HEX[:32]}", HEX[:32]),
    "kaggle json": (f"""--kaggle-json '{{"username":"me","key":"{HEX[:32]}"}}'""", HEX[:32]),
    "openai": (f"--judge sk-proj-{RANDOM}", RANDOM),
    "github": (f"--clone https://ghp_{RANDOM[:36]}@github.com/a/b", RANDOM[:36]),
    "github, fine-grained": (f"--gh github_pat_{RANDOM}", RANDOM),
    "gitlab": (f"--repo glpat-{RANDOM[:20]}", RANDOM[:20]),
    "jwt": ("--id eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.dozjgNryP4J3jVm", "dozjgNryP4J3jVm"),
    "ssh key": ("--identity '-----BEGIN OPENSSH PRIVATE KEY-----\nb3BlbnNzaA\n'", "b3BlbnNzaA"),
    "sshpass": (f"sshpass -p{SECRET} ssh host", SECRET),
    "curl": (f"-u me:{SECRET}", SECRET),
    "curl header": (f"-H 'X-Auth-Token: {SECRET}'", SECRET),
    "stripe": (f"--billing sk_test_{RANDOM[:24]}", RANDOM[:24]),
    "databricks": (f"--host-token=dapi{HEX[:32]}", HEX[:32]),
    "ngc": (f"--ngc nvapi-{RANDOM}", RANDOM),
    "hydra": (f"hydra.launcher.env.HF_TOKEN={SECRET} +wandb.key={HEX}", SECRET),
    "uuid": ("--run 123e4567-e89b-42d3-a456-426614174000", "426614174000"),
    "card": ("--pay 4242424242424242", "4242424242424242"),
    "basic auth": (f"--basic {base64.b64encode(b'me:' + SECRET.encode()).decode()}", "bWU6a"),
    "modal": (f"--token-id ak-{RANDOM[:8]} --token-secret as-{SECRET}", SECRET),
    "absolute path": ("--data /home/somebody/secret-project", "somebody"),
    "home folder": ("--data ~somebody/x", "somebody"),
}  # fmt: skip


@pytest.mark.parametrize("tool", LEAKS)
def test_no_secret_of_a_real_tool_s_options_is_kept(tool: str) -> None:
    line, secret = LEAKS[tool]
    arguments = shlex.split(line)
    assert secret in " ".join(arguments)
    assert secret not in " ".join(masked_arguments(arguments))


# Options of training scripts (torchvision's references, timm, transformers, nanoGPT, Lightning,
# Hydra, torchrun) that are worth keeping.
ORDINARY = [
    "--lr 1e-3",
    "--lr=0.001",
    "--weight-decay 5e-5 --momentum .9",
    "--betas 0.9 0.999",
    "--betas=0.9,0.999",
    "--betas '(0.9, 0.95)'",
    "--milestones 30 60 90",
    "--depths=[2,2,6,2]",
    "--model resnet50",
    "--model vit_base_patch16_224",
    "--arch=MobileNetV3Small",
    "--model_name_or_path bert-base-uncased",
    "--model Meta-Llama-3.1-8B-Instruct",
    "--dataset cifar10",
    "--data data/cifar10",
    "--data-path ./data/cifar10",
    "--resume checkpoints/epoch=3-step=100.ckpt",
    "-c configs/resnet50_imagenet.yaml",
    "config=configs/resnet50_imagenet.yaml",
    "--local-rank=0",
    "--device cuda:0",
    "--dtype torch.bfloat16",
    "--amp --no-cuda --fp16",
    "--pin-memory --pin_mem True",
    "-j8 -b 256 -lr 0.1",
    "--per_device_train_batch_size 8 --gradient_accumulation_steps=4",
    "--fsdp_transformer_layer_cls_to_wrap LlamaDecoderLayer",
    "--max-tokens 512 --max_new_tokens=128",
    "--tokenizer gpt2 --pad_token [PAD] --pad-token-id 0",
    "--tokens-per-batch 4096 --token-dropout 0.1",
    "--num-keys 8 --key-dim 64 --label-key fine_label --sort_key=name",
    "--keyboard us --monkey george --author me",
    "--scheduler CosineAnnealingWarmRestarts",
    "--opt adamw_bnb_8bit",
    "--wandb-project my-project --wandb-mode offline --report_to wandb",
    "--seed 123456789 --steps 1_000_000",
    "--wd=-0.1 --threshold -1 --clip inf",
    "--size 224x224 --lora-r 16",
    "--run-name my-exp-v2_ablation.3",
    "model.depth=3 +trainer.devices=2 ++optim.lr=3e-4",
    "optimizer@model=adam hydra/launcher=submitit_slurm",
    "--set model.depth=3",
    "train eval",
    "--split train,val --subset=en",
    "--date 2024-01-31 --version 1.2.3",
    "--shuffle=False --limit=",
    "-- positional",
    "-",
]


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "data" / "cifar10").mkdir(parents=True)
    (tmp_path / "checkpoints").mkdir()
    (tmp_path / "checkpoints" / "epoch=3-step=100.ckpt").touch()
    (tmp_path / "configs").mkdir()
    (tmp_path / "configs" / "resnet50_imagenet.yaml").touch()
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("line", ORDINARY)
def test_ordinary_options_are_kept(project: Path, line: str) -> None:
    arguments = shlex.split(line)
    assert masked_arguments(arguments) == arguments


@pytest.mark.parametrize(
    "value",
    ["data/cifar100", "/etc/hosts", "~", "", "a\0b", "x" * 300, "data/" + "y" * 300],
)
def test_only_relative_paths_that_exist_are_kept(project: Path, value: str) -> None:
    assert masked_arguments(["--data", value]) == ["--data", MASK]


@pytest.mark.parametrize(
    ("name", "kept"),
    [
        ("resnet50", True),
        ("a" * 33, False),
        ("step1234", True),
        ("step12345", False),
        ("deadbeefdeadbee", True),  # 15
        ("deadbeefdeadbeef", False),
        ("dead-beef-dead-beef", False),
        ("1234-5678-9012-3456", False),
        ("123456789012345", True),
        ("1234567890123456", False),
        ("two words", False),
        ("a/b", False),
    ],
)
def test_the_bounds_of_a_name(name: str, kept: bool) -> None:
    assert is_harmless(name) is kept


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
        HEX,
    ],
)
def test_what_looks_like_a_secret_is_masked_wherever_it_stands(value: str) -> None:
    forms = ([value], [f"--run-name={value}"], ["--x", value], [f"a={value}"], [f"--{value}"])
    for arguments in (*forms, [f"-{value}"], [f"[1,{value}]"], [f"{value}=1"]):
        assert value not in " ".join(masked_arguments(arguments))


def test_an_option_after_a_secret_without_a_value_is_kept() -> None:
    assert masked_arguments(["--password", "--lr", "0.1"]) == ["--password", "--lr", "0.1"]


def test_all_values_of_a_secret_option_are_masked_and_no_more() -> None:
    shown = masked_arguments(["--keys", "a", "1", "train.py", "--lr", "0.1", "b"])
    assert shown == ["--keys", MASK, MASK, MASK, "--lr", "0.1", "b"]


def _base62(bits: random.Random, length: int) -> str:
    return "".join(bits.choices(string.ascii_letters + string.digits, k=length))


FORMS: dict[str, Callable[[random.Random, int], str]] = {
    "base62": _base62,
    "hex": lambda bits, length: f"{bits.getrandbits(4 * length):0{length}x}",
    "HEX": lambda bits, length: f"{bits.getrandbits(4 * length):0{length}X}",
    "base64": lambda bits, length: base64.b64encode(bits.randbytes(length)).decode(),
    "urlsafe": lambda bits, length: base64.urlsafe_b64encode(bits.randbytes(length)).decode(),
    "unpadded": lambda bits, length: FORMS["urlsafe"](bits, length).rstrip("="),
    "base32": lambda bits, length: base64.b32encode(bits.randbytes(length)).decode(),
    "base32 lower": lambda bits, length: base64.b32encode(bits.randbytes(length)).decode().lower(),
    "uuid": lambda bits, length: str(uuid.UUID(int=bits.getrandbits(128), version=4)),
    "digits": lambda bits, length: "".join(bits.choices(string.digits, k=length)),
    "printable": lambda bits, length: "".join(bits.choices(string.printable[:94], k=length)),
    "letters": lambda bits, length: "".join(bits.choices(string.ascii_letters, k=length)),
}  # fmt: skip
PLACES: list[Callable[[str], list[str]]] = [
    lambda value: [value],
    lambda value: ["--name", value],
    lambda value: [f"--name={value}"],
    lambda value: [f"name={value}"],
    lambda value: ["--names", "first", value],
    lambda value: [f"--names=first,{value}"],
    lambda value: [f"--names=[1,{value}]"],
    lambda value: [f"--{value}"],
]


# The examples are always the same ones: of random strings a few do read like words.
@settings(max_examples=400, derandomize=True)
@given(
    seed=st.integers(0, 1 << 64), form=st.sampled_from(list(FORMS)), length=st.integers(24, 64),
    place=st.sampled_from(PLACES),
)  # fmt: skip
def test_no_random_string_survives(
    seed: int, form: str, length: int, place: Callable[[str], list[str]]
) -> None:
    # Through a hash: what is tried is random even where seeds are small.
    value = FORMS[form](random.Random(hashlib.sha256(str(seed).encode()).digest()), length)
    assert value not in " ".join(masked_arguments(place(value)))


def test_how_many_random_strings_read_like_words() -> None:
    """The share that `is_readable` states: below it keys of services are told by their form."""
    bits = random.Random(0)
    for length, most in ((16, 20), (24, 2), (32, 1)):
        kept = sum(is_harmless(_base62(bits, length)) for _ in range(2000))
        assert kept <= most


@settings(max_examples=200)
@given(st.lists(st.text(max_size=40), max_size=6))
def test_any_arguments_have_a_form(arguments: list[str]) -> None:
    shown = masked_arguments(arguments)
    assert len(shown) == len(arguments)
    assert masked_arguments(shown) == shown
    masked_text(" ".join(arguments))


@pytest.mark.parametrize(
    "name",
    ["use_tokenizer", "--passes", "--author", "--max_tokens", "--patch-size", "--sigma",
     "--pattern", "--compass", "--keep", "--hf_transfer",
     "--wandb-project", "--weights", "--path", "--signal", "", "--", "-P", "--num_passes"],
)  # fmt: skip
def test_names_that_only_look_like_secrets(name: str) -> None:
    assert not is_secret_name(name)


@pytest.mark.parametrize(
    "name",
    [
        "--hftoken",
        "--wandbkey",
        "--passkey",
        "--hubtoken",
        "--userkey",
        "-storepass",
        "-keypass",
        "--dbpass",
        "--pswd",
        "--rootpw",
        "--masterkey",
        "--mfa",
        "--totp",
        "--2fa",
        "--cvv",
        "--ssn",
        "--pin",
        "--user-pin",
        "--mnemonic",
        "--hash-salt",
        "--session-id",
        "--sessionid",
        "--netrc",
        "--access-code",
        "--recovery-code",
        "--activationCode",
        "--seed-phrase",
        "--passfile",
    ],
)
def test_names_of_secrets_that_are_numbers_or_written_as_one_word(name: str) -> None:
    assert masked_arguments([name, "1234", "--lr", "0.1"]) == [name, MASK, "--lr", "0.1"]
    assert masked_arguments([f"{name}=1234"]) == [f"{name}={MASK}"]


@pytest.mark.parametrize(
    "name",
    [
        "--maxtokens",
        "--ntokens",
        "--visual-tokens",
        "--patch-tokens",
        "--reg_tokens",
        "--hotkey",
        "--prompt-tokens",
        "--stop-token",
        "--token-loss",
        "--key-frames",
        "--forward-pass",
        "--pass-rate",
        "--two-pass",
        "--bypass",
        "--pin-memory",
        "--num-kv-keys",
    ],
)
def test_names_of_models_and_losses_are_no_secrets(name: str) -> None:
    assert masked_arguments([name, "1234"]) == [name, "1234"]


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("git clone https://me:pw@host/x", "git clone https://***@host/x"),
        ("cannot log in: password=hunter2, user=me", "cannot log in: password=***, user=me"),
        ("{'api_key': 'abc', 'b': 1}", "{'api_key': ***, 'b': 1}"),
        ("'['aws', '--password', 'x', '--b', 'c']'", "'['aws', '--password', ***, '--b', 'c']'"),
        ("GET https://host/x?sig=abc&n=1", "GET https://host/x?sig=***&n=1"),
        ("Authorization: Basic abc", "Authorization ***"),
        ("POST https://hooks.slack.com/services/T0/B0/x", "POST https://hooks.slack.com/***"),
        (f"no such key: {HEX}", "no such key: ***"),
        (f"run {RANDOM} is gone", "run *** is gone"),
        ("the password is wrong", "the password is wrong"),
        ("mat1 and mat2 shapes cannot be multiplied (3x4 and 5x6)",) * 2,
        ("encoder.layers.0.self_attn.out_proj.weight at train.py:42",) * 2,
        ("encoder_layers_0_self_attention_output_dense",) * 2,
        ("/home/me/project/runs/train-2026-01-31T12-00-00.db",) * 2,
    ],
)  # fmt: skip
def test_a_text_is_masked_in_place(text: str, shown: str) -> None:
    assert masked_text(text) == shown


def test_a_long_text_is_read_in_one_go() -> None:
    """No form of text makes a search go back and forth."""
    for text in ("a-" * 10_000, "--" * 10_000, "x" * 20_000, "'a'," * 5_000, "http://" * 3_000):
        masked_text(text)


def test_texts_in_data() -> None:
    data = {"error": "token=abc", "n": 1, "deep": [{"password": "x", "key": 3}], "none": None}
    shown = {"error": "token=***", "n": 1, "deep": [{"password": MASK, "key": 3}], "none": None}
    assert masked_texts(data) == shown
    assert masked_texts({"keys": ["x"], "auth": {"user": "x"}}) == {
        "keys": [MASK], "auth": {"user": MASK},
    }  # fmt: skip


def test_settings_of_an_object_are_plain_and_hold_no_secret() -> None:
    class Config:
        def __str__(self) -> str:
            return "Config(api_key='abc')"

    deep: list[object] = []
    deep.append(deep)
    for value, shown in [
        (0.9, 0.9), (None, None), (True, True), ((0.9, 0.999), [0.9, 0.999]), ("decay", "decay"),
        ("no bias and norm", MASK), ({"api_key": "abc", "n": 2}, {"api_key": MASK, "n": 2}),
        (Config(), "Config"), (RANDOM, MASK),
    ]:  # fmt: skip
        assert masked_setting("name", value) == shown
    assert masked_setting("token", "abc") == MASK
    assert masked_setting("password", 1234) == MASK
    assert masked_setting("api_key", {"a": "abc", "b": [1234]}) == {"a": MASK, "b": [MASK]}
    assert masked_setting("auth", False) is False
    masked_setting("name", deep)
