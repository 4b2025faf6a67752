"""Files that are written by native code."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.running.trying.trials import trial

HEAD = "import sys, torch; from torch import nn; OUT = sys.argv[1]; net = nn.Linear(2, 2)\n"
WRITERS = {
    "torch.save": "torch.save(net.state_dict(), OUT)",
    "torch.save by name": "torch.save(f=OUT, obj=net.state_dict())",
    "imported": "from torch import save; save(net.state_dict(), OUT)",
    "torch.jit.save": "torch.jit.save(torch.jit.script(net), OUT)",
    "safetensors": "from safetensors.torch import save_file as s; s(dict(net.state_dict()), OUT)",
}


@pytest.mark.parametrize("name", WRITERS)
def test_native_code_asks_before_it_writes(name: str, tmp_path: Path) -> None:
    out = tmp_path / "model.pt"
    end = trial(tmp_path, HEAD + WRITERS[name], str(out)).end
    assert (end.how, end.error) == ("refused", f"writes {out}")
    assert not out.exists()


def test_a_checkpoint_beside_the_script_is_written_in_the_scratch_folder(tmp_path: Path) -> None:
    work = tmp_path / "work"
    work.mkdir()
    (work / "last.pt").write_bytes(b"the old one")
    script = """
        import os, torch
        from pathlib import Path
        assert Path("last.pt").read_bytes() == b"the old one"
        torch.save({"a": 1}, "last.pt")
        torch.save({"a": 2}, Path(__file__).parent / "new.pt")
        assert torch.load("last.pt") == {"a": 1}
    """
    made = trial(tmp_path, script)
    assert (made.end.how, made.end.error) == ("script", "")
    assert (work / "last.pt").read_bytes() == b"the old one"
    assert sorted(path.name for path in work.iterdir()) == ["last.pt", "script.py"]
    assert (made.inside / "new.pt").exists()


def test_other_processes_are_not_joined(tmp_path: Path) -> None:
    end = trial(
        tmp_path,
        "import torch.distributed as d\n"
        "try: d.init_process_group('gloo', 'tcp://127.0.0.1:29599', rank=0, world_size=1)\n"
        "except BaseException: pass",
    ).end
    assert (end.how, end.error) == ("refused", "connects to other processes")
