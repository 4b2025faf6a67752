"""The training scripts of tests/scripts, and what must be found in their run files."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

SCRIPTS = Path(__file__).parents[1] / "scripts"
BARE, WATCHED = 0, 1
BOTH = (BARE, WATCHED)


@dataclass(frozen=True)
class Case:
    """A script, and what must be found in its run files.

    Arguments:
        command: what follows `python`.
        steps: steps of each run; a script that trains one model after the other has several.
        models: name and class of each model of the first run; an only one has no name.
        printed: how many of the losses that were recorded the script prints, with six digits.
        cold: which of the two gets a process of its own: the one under `nethook run`, or BOTH.
        code: what it ends with.
        ill: findings at warning or above that its runs have; those of others are healthy.
    """

    command: str
    steps: tuple[int, ...]
    models: dict[str, str]
    printed: int = 0
    cold: tuple[int, ...] = ()
    code: int = 0
    ill: tuple[str, ...] = ()


def only(kind: str) -> dict[str, str]:
    return {"": kind}


SEQUENTIAL = only("Sequential")
CASES = [
    Case("accelerated.py", (8,), SEQUENTIAL),
    Case("accumulation.py", (10,), SEQUENTIAL),
    Case("amp.py", (16,), SEQUENTIAL, printed=16),
    Case("built_late.py", (5, 5, 3, 3, 3), SEQUENTIAL, printed=1),
    Case("changes_folder.py", (4,), SEQUENTIAL, printed=4),
    Case("class_based.py", (24,), only("Classifier")),
    Case("compiled.py", (12,), SEQUENTIAL, printed=3),
    Case("crashes.py", (3,), only("Fragile"), printed=3, cold=BOTH, code=1),
    Case("ddp_spawn.py", (4,), SEQUENTIAL, printed=4, cold=(WATCHED,)),
    Case("diverges.py", (12,), SEQUENTIAL, printed=1, ill=("learning-rate-too-high",)),
    Case("early_stopping.py", (0,), SEQUENTIAL),
    Case("env_first.py", (5,), SEQUENTIAL, printed=5, cold=BOTH),
    Case("exits.py", (7,), only("Linear"), cold=(WATCHED,), code=3),
    Case("functions.py --epochs 2 --lr 0.2", (24,), SEQUENTIAL, printed=6),
    Case("gan.py", (12,), {"generator": "Generator", "discriminator": "Discriminator"}, printed=3),
    Case("gpt.py", (8,), only("GPT"), printed=8),
    Case("hf_trainer.py", (6,), only("GPT2LMHeadModel")),
    # Of 16 rounds two were interrupted before their update: 14 have changed the weights.
    Case("interrupted.py", (14,), SEQUENTIAL, printed=12, cold=BOTH, code=-2),
    Case("lbfgs.py", (4,), SEQUENTIAL),
    Case("lightning_module.py", (12,), only("LitClassifier"), printed=12),
    Case("optimizer_in_backward.py", (8,), SEQUENTIAL, printed=8),
    Case("other_methods.py", (8,), only("Flow"), printed=8),
    Case(
        "own_options.py --to x --name n --budget 2 --quiet -m 0.5 a -- --b", (5,), only("Linear"), 5
    ),
    Case("plain.py", (12,), only("Net")),
    Case("progress.py", (16,), SEQUENTIAL, printed=2),
    Case("relative_data.py", (6,), SEQUENTIAL, printed=6),
    Case("relaunches.py", (4, 4), SEQUENTIAL, printed=1, cold=(WATCHED,)),
    Case("rnn.py", (16,), only("CharRNN"), printed=4),
    # A model that was read from a file is met after the first step of its optimizer.
    Case("save_whole.py", (4, 3), only("Net"), printed=1),
    Case("scheduler.py", (16,), SEQUENTIAL, printed=16),
    Case("script_export.py", (5,), only("Net"), printed=5),
    Case("several_optimizers.py", (15,), only("ActorCritic"), printed=3),
    Case("teacher.py", (18,), {"student": "Sequential", "criterion": "Distill"}, printed=3),
    Case("vae.py", (12,), only("VAE")),
    Case("workers.py", (12, 12), SEQUENTIAL),
    Case("-m package.train a --to b", (6,), only("Model"), printed=6),
]
