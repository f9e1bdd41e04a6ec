"""From names to reports: what is wrong with a request is said before long work starts, and then it is measured.

One `Run` holds what several systems are measured with: the corpus, the extractor, the settings.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path

import torch

from sketchdnn.data.loader import Dataset
from sketchdnn.diffusion.sampling import SamplingOptions, find_sampler
from sketchdnn.errors import MissingFileError, display_path
from sketchdnn.generation.files import create_folder
from sketchdnn.generation.generate import STEPS, check_seed_and_count
from sketchdnn.geometry import Sketch
from sketchdnn.systems import System, from_pretrained
from sketchdnn.systems.aliases import current_sampler
from sketchdnn.systems.devices import find_device
from sketchdnn.systems.pretrained import check_model_sampling, model_hash

from .evaluate import Evaluation, evaluate, protocol_of
from .features import Extractor, default_cache
from .inception import find_inception, load_inception
from .protocol import Protocol, refuse_unlike
from .report import write_report, write_samples
from .samples import Samples, check_count, draw_samples, read_samples
from .scores import DAMAGE
from .settings import FAST, Settings, sizes_for
from .sheets import sketches_of
from .stages import OnStage, Stages

# What one core of a CPU gets through the Inception, about.
PICTURES_PER_MINUTE = 300


@dataclass(frozen=True, slots=True)
class Request:
    """What a person asks for. `seed`, `steps` and `sampler` are how models draw; each has a sampler of its own."""

    data: Path
    settings: Settings = field(default_factory=Settings)
    seed: int = 0
    steps: int = STEPS
    sampler: str | None = None
    inception: Path | None = None
    device: str = "auto"
    cache: Path | None = None
    save_samples: bool = True
    command: str = ""
    workers: int = 1  # that repair samples


def settings_from(
    *,
    fast: bool,
    count: int | None,
    likelihood: bool,
    corruption: bool | None,
    repaired: bool = False,
    split: str = "test",
) -> Settings:
    """The full settings or the fast ones, changed as asked."""
    settings = replace(FAST if fast else Settings(), repaired=repaired, split=split)
    if count is not None:
        check_count(count)
        settings = replace(settings, count=count)
    if corruption is not None:
        settings = replace(settings, corruption=corruption)
    return replace(settings, likelihood=likelihood)


class Run:
    """A corpus and an extractor, opened once. `extractor` replaces the Inception, in tests only."""

    def __init__(
        self,
        request: Request,
        *,
        on_stage: OnStage = lambda name, share: None,
        extractor: Callable[[str], Extractor] | None = None,
    ) -> None:
        if request.sampler is not None:
            find_sampler(current_sampler(request.sampler))
        check_seed_and_count(request.seed, request.settings.count)
        check_count(request.settings.count)
        self.request = request
        self.device = find_device(request.device)
        self.dataset = Dataset.open(request.data)
        test, train = self._counts()
        sizes_for(request.settings, request.settings.count, test, train)  # refuses a corpus that is too small
        if extractor is None:
            path = find_inception(request.inception)
            extractor = lambda device: load_inception(path, device)  # noqa: E731
        self._make_extractor = extractor
        self._extractor: Extractor | None = None
        self._on_stage = on_stage

    @property
    def pictures(self) -> int:
        """How many pictures the extractor has to look at for one system, if none of the corpus is known yet."""
        settings = self.request.settings
        test, train = self._counts()
        sizes = sizes_for(settings, settings.count, test, train)
        damaged = len(DAMAGE) * sizes.test if settings.corruption else 0
        samples = max(sizes.test, sizes.train) * (2 if settings.repaired else 1)
        return samples + sizes.test + max(sizes.test, 2 * sizes.train) + damaged

    @property
    def minutes(self) -> float:
        """About how long that takes on this machine's CPU."""
        return self.pictures / PICTURES_PER_MINUTE / max(1, torch.get_num_threads())

    def real_sketches(self, count: int = 100) -> list[Sketch]:
        """Some of the split that samples are compared with."""
        split = self.dataset.split(self.request.settings.split).compact
        return sketches_of(split, range(min(count, len(split))))

    def check(self, name: str, *, is_model: bool) -> None:
        """Refuses what `measure` would refuse of it by itself; nothing is measured."""
        if is_model:
            self._model(name, self.request.sampler)
        else:
            self._samples(Path(name))

    def measure(
        self,
        name: str,
        out: Path,
        *,
        is_model: bool,
        like: Protocol | None = None,
        label: str | None = None,
        sampler: str | None = None,
    ) -> Evaluation:
        """Judge a model or a file of sketches, and write the report, under its label if one is told.

        `like`: the protocol that it must share. `sampler`: in place of the request's.
        """
        stages = Stages(self._on_stage, self.device)
        settings = self.request.settings
        system: System | None
        if is_model:
            system, samples = self._drawn(name, stages, out, like, sampler or self.request.sampler)
        else:
            system, samples = self._read(Path(name), stages, out, like)
        samples = samples if label is None else replace(samples, name=label)
        found = evaluate(
            samples,
            self.dataset,
            self._loaded(stages),
            settings,
            system=system if settings.likelihood else None,
            cache=self.request.cache or default_cache(),
            command=self.request.command,
            workers=self.request.workers,
            stages=stages,
        )
        write_report(found, out)
        return found

    def _drawn(
        self, model: str, stages: Stages, out: Path, like: Protocol | None, asked: str | None
    ) -> tuple[System, Samples]:
        request = self.request
        with stages("loading the model"):
            system, sampler = self._model(model, asked)
            create_folder(out)
            system = system.to_device(self.device)
        self._loaded(stages)  # refuses a wrong file before sketches are drawn
        self._refuse_unlike(like, model, request.settings.count, system, stages)
        with stages("drawing sketches") as tell:
            samples = draw_samples(
                system,
                display_path(Path(model).resolve().name),
                request.settings.count,
                seed=request.seed,
                steps=request.steps,
                sampler=sampler,
                on_progress=tell,
            )
        if request.save_samples:
            write_samples(samples, out)  # at once: they are dear, and what comes after may be stopped
        return system, replace(samples, origin={**samples.origin, "system": system.name, "sha256": model_hash(model)})

    def _read(self, path: Path, stages: Stages, out: Path, like: Protocol | None) -> tuple[None, Samples]:
        with stages("reading sketches"):
            samples = self._samples(path)
            create_folder(out)
        self._refuse_unlike(like, samples.name, len(samples), None, stages)
        return None, samples

    def _model(self, name: str, asked: str | None) -> tuple[System, str]:
        """The model on the CPU and the sampler it draws with; refuses one that cannot draw as asked."""
        options = SamplingOptions(asked, self.request.steps)
        check_model_sampling(name, options)
        system = from_pretrained(name)
        return system, system.resolve(options).sampler_name

    def _samples(self, path: Path) -> Samples:
        if not path.exists():
            raise MissingFileError(path, "is not there")
        return read_samples(path, self.request.settings.count)

    def _refuse_unlike(
        self, like: Protocol | None, name: str, samples: int, system: System | None, stages: Stages
    ) -> None:
        """Refuses what could not be compared afterwards."""
        if like is None:
            return
        settings = self.request.settings
        test, train = self._counts()
        sizes = sizes_for(settings, samples, test, train)
        mine = protocol_of({}, samples, self.dataset, self._loaded(stages), settings, sizes, system)
        refuse_unlike({"what was measured before": like, name: mine})

    def _counts(self) -> tuple[int, int]:
        """How many sketches there are to compare with, held out and for training."""
        return len(self.dataset.split(self.request.settings.split)), len(self.dataset.split("train"))

    def _loaded(self, stages: Stages) -> Extractor:
        if self._extractor is None:
            with stages("loading the extractor"):
                self._extractor = self._make_extractor(self.device)
        return self._extractor
