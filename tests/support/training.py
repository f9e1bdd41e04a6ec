"""Runs of training in tests: a corpus of parts on the CPU, and a resumed run beside an uninterrupted one."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import torch
from torch import distributed
from torch.testing._internal.distributed.fake_pg import FakeStore

from sketchdnn.data.procedural import procedural
from sketchdnn.geometry import normalize
from sketchdnn.representation.compact import encode
from sketchdnn.systems import System
from sketchdnn.training.checkpoint import list_checkpoints
from sketchdnn.training.config import TrainConfig
from sketchdnn.training.corpus import Corpus, to_device
from sketchdnn.training.loop import Outcome, train


def part_corpus(count: int = 24, seed: int = 0) -> Corpus:
    sketches = [normalize(procedural(seed, index))[0] for index in range(count)]
    return to_device(encode(sketches, canonical_lines=True), "cpu")


def assert_resume_is_exact(fresh: Callable[[], System], corpus: Corpus, config: TrainConfig, out: Path) -> Outcome:
    """Weights, average and moments of a run that is stopped half way and resumed; its outcome."""
    whole, resumed = fresh(), fresh()
    one = train(whole, corpus, config, out / "whole")
    train(fresh(), corpus, replace(config, steps=(config.steps or 0) // 2), out / "half")
    other = train(resumed, corpus, config, out / "half", resume=True)
    assert (one.finished, other.finished, one.step, other.step) == (True, True, config.steps, config.steps)
    for here, there in ((whole, resumed), (one.model, other.model)):
        for name, weight in here.state_dict().items():
            assert torch.equal(weight, there.state_dict()[name]), name
    last = [list_checkpoints(out / run / "checkpoints")[-1] / "state.safetensors" for run in ("whole", "half")]
    assert last[0].read_bytes() == last[1].read_bytes()
    return other


@contextmanager
def fake_process_group(size: int) -> Iterator[None]:
    """A process that believes it has others, which hand back what they are given."""
    distributed.init_process_group("fake", rank=0, world_size=size, store=FakeStore())  # type: ignore[no-untyped-call]
    try:
        yield
    finally:
        distributed.destroy_process_group()
