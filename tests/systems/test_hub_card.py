"""Saved models as the tools of the Hugging Face Hub read them: cards with metadata, license notes, snapshots."""

from pathlib import Path

import pytest
import torch
from huggingface_hub import ModelCard
from support.generation import randomized

from sketchdnn import SketchDNN
from sketchdnn.evaluation import load_report
from sketchdnn.systems import load_preset
from sketchdnn.systems.pretrained import LICENSE_NOTE, license_note

ROOT = Path(__file__).parents[2]


def test_the_card_of_the_shipped_model_has_metadata_and_the_scores_of_its_report() -> None:
    note = license_note("ours")
    assert note is not None
    card = ModelCard.load(note.parent / "README.md")
    assert card.data.library_name == "sketchdnn"
    assert (card.data.license, card.data.license_link) == ("other", LICENSE_NOTE)
    scores = load_report(ROOT / "benchmarks" / "reports" / "ours")["scores"]["test"]["system"]
    results = {result.metric_type: result.metric_value for result in card.data.eval_results}
    assert {name: round(scores[name]["value"], 1 if name == "fid" else 3) for name in results} == results
    for license_name in ("CC-BY-SA", "GPL", "CERN-OHL"):
        assert f"| {license_name} | " in note.read_text(encoding="utf-8"), "attribution by license"


def test_a_saved_copy_keeps_the_license_note_and_says_so(tmp_path: Path) -> None:
    model = SketchDNN(randomized(load_preset("tiny").make()))
    model.save_pretrained(tmp_path / "own")
    assert ModelCard.load(tmp_path / "own" / "README.md").data.license == "mit"
    assert not (tmp_path / "own" / LICENSE_NOTE).exists()
    model.source = "ours"  # as if its weights had been loaded
    model.save_pretrained(tmp_path / "copy")
    assert ModelCard.load(tmp_path / "copy" / "README.md").data.license == "other"
    assert (tmp_path / "copy" / LICENSE_NOTE).read_text() == (license_note("ours") or Path()).read_text()


def test_a_snapshot_of_the_hub_loads(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The layout of the Hub's cache: blobs, a snapshot of links to them, and a reference to its commit."""
    from huggingface_hub import constants, snapshot_download

    model = SketchDNN(randomized(load_preset("tiny").make()))
    model.save_pretrained(tmp_path / "saved")
    commit = "0" * 40
    repository = tmp_path / "hub" / "models--maker--sketches"
    for folder in ("blobs", f"snapshots/{commit}", "refs"):
        (repository / folder).mkdir(parents=True)
    for number, path in enumerate(sorted((tmp_path / "saved").iterdir())):
        (repository / "blobs" / str(number)).write_bytes(path.read_bytes())
        (repository / "snapshots" / commit / path.name).symlink_to(f"../../blobs/{number}")
    (repository / "refs" / "main").write_text(commit)
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "hub"))
    downloaded = snapshot_download("maker/sketches", cache_dir=tmp_path / "hub")
    assert Path(downloaded) == repository / "snapshots" / commit
    loaded = SketchDNN.from_pretrained(downloaded)
    for name, tensor in loaded.system.state_dict().items():
        torch.testing.assert_close(tensor, model.system.state_dict()[name], rtol=1e-2, atol=1e-2)
