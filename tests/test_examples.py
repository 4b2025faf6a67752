"""The examples run as a user runs them."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.running.both import Done, Warm, bare

EXAMPLES = Path(__file__).parents[1] / "examples"

# What each must print: lines that hold what the example is about.
KEY_LINES = {
    "activation_stats": [
        r"^step 30  loss 0\.\d+  accuracy (100|9\d)%$",
        r"^conv1: 30 values of each, none from evaluation$",
        r"^conv2: 30 values of each, none from evaluation$",
    ],
    "activations": [
        r"^fc1 activation shape: torch\.Size\(\[1, 5\]\)$",
        r"^fc1, kept by a plain hook: .*\b0\.0\b",
        r"^fc1, on the tape: .*-0\.\d+",
        r"^relu, its two calls: \[\(1, 5\), \(1, 2\)\]$",
        r"^'relu' was called 2 times",
    ],
    "attributed_features": [
        r"^`baseline` must be named$",
        r"^integrated gradients: s5, bmi, \w+\nShapley values: s5, bmi, \w+\nocclusion: s5, bmi, ",
        r"^agreement of the three: 0\.9\d$",
        r"^each row adds up to its prediction: True\na linear model in closed form: True$",
        r"^written: all\.html, one patient\.html$",
    ],
    "attributed_words": [
        r"^integrated_gradients: kitten, kitten; error \de-0[4-9]$",
        r"^op_lift: kitten, kitten; error \de-0[4-9]$",
        r"^occlusion: kitten, kitten$",
        r"^written: \['words\.html'\]$",
    ],
    "by_type": [
        r"^nn\.Linear, no head +first\.up, first\.down, second\.up, second\.down$",
        r"^more than 4 outputs +first\.up, second\.up$",
        r"^called: 5 times$",
        r"^left behind: no hooks$",
        r"^no module is a .*Conv2d",
    ],
    "change_and_restore": [
        r"^by hand: changed True, back True$",
        r"^a step of training: changed True, back True$",
        r"^after an error: back True$",
        r"^a change of rank one, .* changed True, back True and it was W \+ u vᵀ: True$",
        r"^backward through a graph from before the change works$",
    ],
    "clamp_and_zero": [  # the first two lines, to the letter, are those of the notes
        r"\AGradients less than zero: False\nThe biases are tensor\(\[0\., 0\., 0\., 0\., 0\.\]\)$",
        r"^  Gradients less than zero: True$",
        r"^  The gradients of the biases are zero: False$",
        r"^It runs without gradients, and on a batch of two: \(2, 5\)$",
        r"^Left behind: no hooks$",
    ],
    "clip_gradients": [
        r"^not clipped .* \d\d\.\d+$",
        r"^torch, after backward (.* 1\.000)\ncb\.clip_grad_norm     \1$",
        r"^each parameter alone  ( +1\.000){4} +2\.000$",
    ],
    "dead_units": [
        r"^learning rate 0\.02.*\n(  steps .* 0 of 64  relu2  0 of 64  zeros [45]\d%\n){3}",
        r"^learning rate 0\.5.*\n(.*\n){2}  steps 40-60 .* relu2 \d\d of 64  zeros \d+%$",
    ],
    "debug_gradients": [
        r"^before_square\.weight +wrong ",
        r"^detached\.weight +none$",
        r"^dead\.weight +zero ",
        r"^head\.weight +ok ",
        r"^gradient head: \(4, 1\)$",
        r"^the output of 'dead' has 12 of 12 values that are not finite\.$",
    ],
    "device": [
        r"^device: \w+$",
        r"^a module is moved itself: True$",
        r"^computed on \w+ and recorded on cpu$",
        r"^steered by a direction from the CPU: True$",
    ],
    "features": [
        r"^linear head on the points: +[3-6]\d%$",
        r"^linear head on relu2's output: (100|9\d)%  \(400, 32\)$",
        r"^left behind: no hooks$",
    ],
    "induction_head": [
        r"^loss of the second half: 0\.\d+$",
        r"^  layer 0 ( +\+0\.[01]\d){4}\n  layer 1 ( +\+0\.[1-6]\d){4}$",
        r"^runs: 3; rank agreement: (1\.00|0\.[89]\d)$",
        r"^its heads look back \[7, 7, 7, 7\] tokens; the same token is 8 back$",
        r"^right answers without them: [0-7]\d%$",
    ],
    "inner_loss": [
        r"^   0\.0 .* 0\.0000$",
        r"^   1\.0  +\d\.\d\d +\d+%   0\.0[1-9]\d*$",
    ],
    "modify_output": [
        r"^halved: True$",
        r"^clamped, then without units 0 and 3: True$",
        r"^both layers centred: True$",
        r"^patched from another run: True$",
        r"^  NoSuchSiteError: .*\n  InPlaceEditError: .*\n  UnfiredError: ",
    ],
    "needed_pixels": [
        r"^with a watermark: pixel \(0, 7\) matters most, -\d+\.\d+ \(-\d+\.\d+ … -\d+\.\d+\)$",
        r"^  its share of all effects: [3-9]\d%$",
        r"^without: pixel \([0-7], [1-6]\) matters most",
        r"^  64 cells, exact: True$",
        r"^written: with\.html, without\.html$",
    ],
    "no_grad": [
        r"^with gradients +[\d.]+ ms +492 KB$",
        r"^no_grad +[\d.]+ ms +0 KB +\d+% of the time$",
        r"^inference_mode +[\d.]+ ms +0 KB +\d+% of the time$",
        r"^no_grad in training mode, twice the same: False$",
        r"^no_grad and eval\(\), twice the same: +True$",
    ],
    "node_hooks": [
        r"^AddmmBackward0 #1 +\(8, 1\) +fc2 +fc2\.bias, fc2\.weight$",
        r"^the output of tanh was made by TanhBackward0$",
        r"^a hook of torch's on it returned nothing and was called: True$",
        r"^  fc2: .*\n  tanh: .*\n  fc1: \[\(8, 4\)\] to \[\(4,\), None, \(3, 4\)\]$",
        r"^what fc1 gets is doubled: True$",
        r"^refused: the callback at nodes\['fc2'\] must return None or a tuple of 3 gradients$",
        r"^left behind: no hooks$",
    ],
    "op_by_op": [
        r"^to explain: a change of 0\.\d+\ninput x gradient misses 0\.[1-9]$",
        r"^op_lift misses \de-0[4-9], in 4 forwards$",
        r"^per token the two agree: correlation (1\.00|0\.9\d)$",
        r"^written: \['lift\.html'\]$",
    ],
    "parameter_tree": [
        r"^│   │   ├── weight: \(4, 4\)$",
        r"^│   │   ├── running_mean: \(4,\), buffer$",
        r"^assigned as a module: +\['body', 'tied'\]$",
        r"^tied\.weight is body\.0\.weight: True$",
    ],
    "compare_networks": [
        r"^CKA of 3 × 3 sites over 64 samples in 1 batches$",
        r"^a layer with itself: \[1\.0, 1\.0, 1\.0\]$",
        r"^a place of the second convolution reads \(8, 8\), ",
    ],
    "probe_and_erase": [
        r"^colour at 0: 0\.9\d \(control 0\.[45]\d, baseline 0\.5\d\)$",
        r"^shape at 0: 0\.9\d ",
        r"^shape at 0, erased: 0\.5\d \(baseline 0\.5\d\)$",
        r"^colour is still answered: (1\.00|0\.9\d)$",
    ],
    "rewrite_fact": [
        r"^before: Paris Rome Madrid Tokyo Cairo$",
        r"^inside: Madrid Rome Madrid Tokyo Cairo$",
        r"^changed most: France$",
        r"^after:  Paris Rome Madrid Tokyo Cairo$",
        r"^from its file: Madrid$",
    ],
    "splice_dictionary": [
        r"^the run is unchanged: True$",
        r"^the feature with the largest effect: 7$",
        r"^loss recovered by the dictionary alone: 0\.8\d$",
    ],
    "steer_gpt2": [
        r"^found at transformer\.h\.0: AUC 1\.00, cosine with what was planted (1\.00|0\.9\d)$",
        r"^with and without a cache the same words: True$",
        r"^words of the second kind: 0% against the direction, 100% along it$",
    ],
    "patch_gpt2": [
        r"^recovered by the second position: 1\.00, .* -?0\.00$",
        r"^recovered by the last position: -?0\.00, .* 1\.00$",
        r"^the other positions: at most 0\.[0-2]\d$",
        r"^written: patching\.html, patching\.json, patching\.safetensors$",
        r"^left behind: no hooks$",
    ],
    "region_target": [
        r"^segmentation: (100|9\d)% near the square$",
        r"^  map: (100|9\d)% near the square$",
        r"^regression: off by 0\.\d columns$",
        r"^  a pixel of the disc matters \d+ times as much as one of the background$",
        r"^written: disc\.html, square\.html$",
    ],
    "root": [
        r"^initial input: \(2, 4\), and by name \{'temperature': 2\.0\}$",
        r"^scaled on the way in, softmax on the way out: True$",
        r"^the temperature divided by ten: True$",
    ],
    "start": [
        r"^  tanh +1\.6667 +1\.5925$",
        r"^  selu +0\.7500 +1\.0000$",
        r"^leaky_relu, slope 0\.2: 1\.3868$",
        r"^  as torch starts it .* ok: False\n  every layer by hand .* ok: False$",
        r"^  planned, calibrated +scale 1\.0e\+00 .* ok: True$",
    ],
    "tensor_hooks": [
        r"^fc2\.bias, each backward: \[8\.0, 8\.0\]$",
        r"^fc2\.bias\.grad, the sum:  tensor\(\[16\.\]\)$",
        r"^what fc1 gets is doubled: True$",
        r"^refused:\n  another type\n  another shape\n  written in place$",
    ],
    "two_checkpoints": [
        r"^layer 0: 0% of it\nlayer 2: 100% of it\nlayer 4: 100% of it$",
        r"^The first layer is the same in both: True$",
        r"^written: layers\.html$",
    ],
    "transfer_learning": [
        r"^420 docstrings of 6 packages; chance 17%$",
        r"^420 rows of 7 layers, 4\.\d MB on disk$",
        # Which layer is best hangs on the version of Python whose docstrings they are.
        r"^embeddings +[789]\d%\n(encoder\.layer\.\d  [789]\d%\n){6}",
        r"^the model is as it was: no hooks True$",
    ],
    "three_kinds": [
        r"^  before fc1: .*\n  after fc1: .*\n  before fc2: ",
        r"^  after fc2: registered last, .*\n  after fc2: output .*\n  after fc2: .* second",
        r"^  gradient of the output of fc2: .*\n  gradient of the output of fc1: ",
        r"^hooks on the model: [1-9]\d* inside, 0 after$",
        r"^removed: no hooks$",
    ],
    "watermark_maps": [
        r"^watermark: the pixel has [1-4]\d% of the attribution, error below 0\.05$",
        r"^  the corner has [3-9]\.\d times the mean of the map$",
        r"^random mark: the pixel has \d% of the attribution, error below 0\.05$",
        r"^written: 4 figures$",
    ],
}


@pytest.fixture(scope="module")
def warm() -> Iterator[Warm]:
    process = Warm("-W", "error")
    yield process
    process.stop()


def check(done: Done) -> str:
    assert done.code == 0, done.out + done.err
    assert done.err == ""
    assert done.closing == ""
    # It reads well in a log: no lines that are too long, no codes for a terminal.
    assert max(map(len, done.out.splitlines())) <= 80
    assert not set(done.out) & {"\x1b", "\r"}
    return done.out


@pytest.mark.parametrize("name", KEY_LINES)
def test_recipe(name: str, warm: Warm, tmp_path: Path) -> None:
    folder = tmp_path / "project"
    folder.mkdir()
    output = check(warm.run(str(EXAMPLES / f"{name}.py"), cwd=folder))
    missing = [line for line in KEY_LINES[name] if not re.search(line, output, re.MULTILINE)]
    assert missing == [], output


def test_mnist(tmp_path: Path) -> None:
    options = ("--epochs", "2", "--seed", "1")
    script = str(EXAMPLES / "mnist.py")
    output = check(bare(script, *options, options=("-W", "error"), cwd=tmp_path))
    accuracy = re.search(r"^test accuracy ([\d.]+)%", output, re.MULTILINE)
    assert accuracy
    # Two epochs instead of six: the whole training takes longer.
    assert float(accuracy[1]) > 80
    assert re.search(r"^hooks on the model before and after: 0 and 0$", output, re.MULTILINE)
    assert "bit-identical with and without nethook: True" in output

    # Three rectifiers; a unit of a convolution is one of its maps.
    units = dict(re.findall(r"^(\w+(?:, call \d)?) .* \d+ of (\d+) ", output, re.MULTILINE))
    assert units == {"relu, call 0": "32", "relu, call 1": "64", "fc1": "512"}


FILES = sorted(path.stem for path in EXAMPLES.glob("*.py"))


def test_every_example_is_run() -> None:
    assert sorted([*KEY_LINES, "mnist"]) == FILES


def test_the_readme_lists_every_example_once() -> None:
    text = (EXAMPLES / "README.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| \[`(\w+)\.py`\]\((\w+)\.py\) \| \S.* \|$", text, re.MULTILINE)
    assert all(shown == target for shown, target in rows)
    assert sorted(shown for shown, _ in rows) == FILES


@pytest.mark.parametrize("name", KEY_LINES)
def test_a_recipe_is_short_and_starts_with_what_is_said_of_it(name: str) -> None:
    source = (EXAMPLES / f"{name}.py").read_text(encoding="utf-8")
    assert (ast.get_docstring(ast.parse(source)) or "").startswith("“")
    assert len(source.splitlines()) <= 90
