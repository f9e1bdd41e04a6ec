"""`--system` on the command line: every system trains in a line, and what does not go together is one sentence."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from support.commands import refused, run
from support.corpora import parts, written

from sketchdnn.systems import SYSTEMS, from_pretrained


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("systems")
    source, out = written(parts(60), folder / "parts.jsonl"), folder / "corpus"
    run("prepare", source, "--out", out)
    return out


def arguments(corpus: Path, out: Path, *more: str) -> list[str]:
    quiet = ["--validate-every", "0", "--preview-every", "0", "--batch-size", "8", "--device", "cpu"]
    return ["train", "--data", str(corpus), "--out", str(out), "--steps", "2", *quiet, *more]


@pytest.mark.parametrize("name", SYSTEMS)
def test_every_system_trains_and_its_model_loads(name: str, corpus: Path, tmp_path: Path) -> None:
    run(*arguments(corpus, tmp_path, "--system", name, "--preset", "tiny"))
    assert from_pretrained(tmp_path / "model").name == name
    other = "latent" if name == "sketchdnn" else "sketchdnn"
    begin = ["--system", other, "--preset", "tiny", "--init-from", str(tmp_path / "model")]
    assert "and the preset's is a" in refused(*arguments(corpus, tmp_path / "again", *begin))


def test_what_does_not_go_together_is_one_sentence(corpus: Path, tmp_path: Path) -> None:
    for words, complaint in (
        ("--system teapot", "'teapot' is no system; use one of sketchdnn, sketchdnn-pos, sketchdnn-cat, latent"),
        ("--system latent --preset paper", "preset 'paper' is of the system sketchdnn, not latent"),
        ("--preset huge", "'huge' is no preset"),
    ):
        assert complaint in refused(*arguments(corpus, tmp_path, *words.split()))


def test_the_latent_stages_are_two_runs(corpus: Path, tmp_path: Path) -> None:
    small = "[system.vae]\nwidth = 32\ndepth = 1\nheads = 2\n[system.network]\nwidth = 32\ndepth = 1\nheads = 2\n"
    for stage in ("vae", "diffusion"):
        (tmp_path / f"{stage}.toml").write_text(f'[system]\nname = "latent"\nstage = "{stage}"\n{small}')
    first, second = tmp_path / "first", tmp_path / "second"
    run(*arguments(corpus, first, "--preset", str(tmp_path / "vae.toml")))
    begin = ["--preset", str(tmp_path / "diffusion.toml"), "--init-from", str(first / "model")]
    run(*arguments(corpus, second, *begin))
    one, other = (from_pretrained(folder / "model").state_dict() for folder in (first, second))
    assert all(torch.equal(one[key], other[key]) for key in one if key.startswith("vae."))
    assert not all(torch.equal(one[key], other[key]) for key in one)
