"""What later versions record otherwise on purpose, and why: such a difference is no fault."""

from __future__ import annotations

import re
from typing import Final

from tools.golden.comparing import ONLY_HERE, ONLY_IN_BASE, Difference

# What later versions record otherwise on purpose: a pattern of paths, and the reason.
CHANGED: Final[dict[str, str]] = {
    r"\.findings$": "rules were added; which each script may have, its test says",
    r"\.findings\[\d+\]\.(message|fix)$": "findings are worded in plain English since 0.1",
    r"\.scalars\.eval_loss:": "an evaluation pass is a point of its losses since 0.1",
    r"\.scalars\.loss:acc(umulation|elerator)\.py": "divided micro-batches are summed since 0.1",
    r"\.scalars\.(batch|params)_fingerprint\b": "fingerprints read eight times as many words",
    r"\.series\.@loss:loss_utils\.py:\d+ loss eval\.": "a sum divided after its call is a mean",
    r"\.info\.(diagnosis\.checks|examined)$": "rules and examinations were added",
}
NEW_FACTS: Final = "facts that new rules of the doctor read"
L1_FACTS: Final = "targets and predictions of losses that 0.1 read none of, such as l1"
# What later versions record besides, and the release does not have at all.
ADDED: Final[dict[str, str]] = {
    r"\.events\[\d+\]\[3\]\.(line|lines|schedulers)$": "events name the lines of the script",
    r"\.events\[\d+\]\[3\]\.planned$": NEW_FACTS,
    r"\.(scalars\.accuracy:|answers\.)": "answers of evaluations are compared with labels",
    r"\.events\[\d+\]\[3\]\.replayed$": "the event of the first NaN names the operation",
    r"\.findings\[\d+\](\.consequences\[\d+\])?\.lines$": "findings name the lines of the script",
    r"\.info\.(examined|examination)$": "the network is examined on copies",
    r"\.info\.diagnosis\.checks$": "a verdict says what was checked",
    r"\.info\.launch$": "runs of one launch are listed together",
    r"\.info\.(graph|loaders|loaded|seen|evaluation_sizes)$": NEW_FACTS,
    r"\.info\.graph\.(born|critics|plain|\w*loads)$": NEW_FACTS,
    r"\.info\.ops(\.[^\[]*)?\[\d+\]\.odd$": NEW_FACTS,
    r"\.losses\[\d+\]\.data\.(padding|parts|part_\w+|target\.between)$": NEW_FACTS,
    r"\.losses\[\d+\]\.data\.(target|spread|elements|error|correlation)$": L1_FACTS,
    r"\.losses\[\d+\]\.data\.prediction\.(std|space|min|mean|max|dtype|distinct)$": L1_FACTS,
    r"\.sites\..*\.(filled|untouched|distinct_(grad_)?columns)$": NEW_FACTS,
}
# Commits that recorded it rightly: the last one before files were moved and renamed, the one that
# counts an optimizer around another as one, and the one for which rows of NaN are not equal.
BEFORE_MOVES: Final = "5908c8a981970ea703ac776000feac09081e5356"
ONE_OPTIMIZER: Final = "ad02c26"
ROWS_OF_NAN: Final = "233538c"
# Scripts of which 0.1.0 recorded something wrong, and the commit to compare them with as well.
MENDED: Final[dict[str, tuple[str, str]]] = {
    "accelerated.py": ("0.1.0 counted the optimizer and Accelerate's own as two", ONE_OPTIMIZER),
    "hf_trainer.py": ("0.1.0 counted the optimizer and Accelerate's own as two", ONE_OPTIMIZER),
    "crashes.py": ("an event says where an exception interrupted a step", BEFORE_MOVES),
    "lightning_module.py": (
        "0.1.0 counted the optimizer and Lightning's own as two",
        ONE_OPTIMIZER,
    ),
    "lbfgs.py": ("0.1.0 took gradients that are wiped for accumulated ones", ONE_OPTIMIZER),
    "several_optimizers.py": ("0.1.0 took a sparse gradient for none", ONE_OPTIMIZER),
    "other_methods.py": ("0.1.0 did not follow a part that alone is called", ONE_OPTIMIZER),
    "interrupted.py": ("0.1.0 recorded nothing after an interrupted step", BEFORE_MOVES),
    "diverges.py": (
        "0.1.0 took rows of NaN for equal ones, and did not list what a file of a NaN leaves out",
        ROWS_OF_NAN,
    ),
}


def reason_of(difference: Difference) -> str | None:
    """Why a field was changed or added on purpose; None where it was not."""
    path, text = difference
    if text == ONLY_IN_BASE and re.search(r"\.info\.", path):
        return None  # what a run says of itself is not lost on purpose
    known = CHANGED | ADDED if text == ONLY_HERE else CHANGED
    return next((why for pattern, why in known.items() if re.search(pattern, path)), None)


def result_of(differences: list[Difference]) -> str:
    """One word on a script: equal, changed (on purpose), DIFFERS."""
    if not differences:
        return "equal"
    return "changed" if all(map(reason_of, differences)) else "DIFFERS"
