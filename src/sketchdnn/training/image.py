"""A run that trains an image encoder: a trained model and a corpus in, the model with an image encoder out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn

from sketchdnn.data import Dataset
from sketchdnn.diffusion.noise import seeded_noise
from sketchdnn.diffusion.sampling import SamplingOptions, condition_on_image
from sketchdnn.io import exclusive_run, remove_abandoned
from sketchdnn.representation import layout
from sketchdnn.representation.batch import SketchBatch
from sketchdnn.systems import System, from_pretrained
from sketchdnn.systems.devices import find_device
from sketchdnn.systems.image_conditioned import ImageConditionedSystem, image_tensors, make_image_model
from sketchdnn.systems.sketchdnn import SketchDNNSystem

from .config import RunError, TrainConfig
from .corpus import Corpus
from .distill import weights_hash
from .distributed import Ranks
from .image_objective import ImageObjective, image_numbers
from .image_settings import ImageTrainConfig
from .loop import Hooks, Outcome, train
from .run import Run
from .start import FOLDERS, MODEL, load_corpora, write_model
from .step import precision
from .validation import LEVELS, evaluating

# Validation: sketches of the loss on a GPU and on a CPU, those that are sampled, and steps of the sampler.
_GPU_SKETCHES, _CPU_SKETCHES = 1024, 64
_GPU_SAMPLES, _CPU_SAMPLES, _STEPS = 512, 32, 16
_BATCH = 128
_SEED = 0x696D616765
# A primitive is found if one of the same kind has every parameter within five of 64 levels (docs/tracing.md).
_NEAR = 5 * 2 / 63
_FAR = 1e3


@dataclass(frozen=True, slots=True)
class ImageTrainRequest:
    """All options of a run.

    Attributes:
        model: The trunk: a model folder or the name of a model of the package.
        init_from: A model whose image encoder the run starts with.
        eight_bit: Write the matrices of the model and its image encoder in eight bits.
    """

    model: str | Path
    config: TrainConfig
    image: ImageTrainConfig
    data: Path
    out: Path
    device: str = "auto"
    resume: bool = False
    init_from: Path | None = None
    eight_bit: bool = False
    hooks: Hooks = field(default_factory=Hooks, compare=False)


class ImageRun(Run):
    """The state of the training of an image encoder."""

    system: ImageConditionedSystem
    objective: ImageObjective

    def __init__(
        self,
        system: System,
        corpus: Corpus,
        config: TrainConfig,
        ranks: Ranks | None = None,
        *,
        image: ImageTrainConfig,
        trunk: str,
    ) -> None:
        self.image, self.trunk = image, trunk
        super().__init__(system, corpus, config, ranks)
        if not self.ranks.alone:
            raise RunError("an image encoder is trained in one process; leave torchrun out")

    def validate(self, model: System, validation: Corpus) -> Mapping[str, float]:
        """The loss at each noise level with and without pictures, and the share of primitives that samples find."""
        assert isinstance(model, ImageConditionedSystem)  # noqa: S101 - made by `_make_objective` from one
        return validate_images(model, validation, self.config, self.image)

    def _make_objective(self) -> nn.Module:
        return ImageObjective(self.system, self.corpus, self.config, self.image)

    def _loss_terms(self) -> Tensor:
        numbers = image_numbers(
            self.config.seed, self.order.numbers(self.step), self.corpus.kind.shape[1], self.image.noises
        )
        with precision(self.device):
            terms: Tensor = self.objective(self.indices(self.step), self.positions, numbers)
        return terms

    def _identity(self) -> dict[str, Any]:
        return {**super()._identity(), "image": asdict(self.image), "trunk": self.trunk}


def validate_images(
    model: ImageConditionedSystem, corpus: Corpus, config: TrainConfig, image: ImageTrainConfig
) -> dict[str, float]:
    """Numbers of a model on held-out sketches with pictures of fixed noise.

    Returns:
        The loss at each level t, `t…`, that without a picture, `blank_t…`, the means of both, and `f1`, the primitive
        F1 of samples in 16 steps.
    """
    device = corpus.params.device
    on_gpu = device.type == "cuda"
    count = min(len(corpus), _GPU_SKETCHES if on_gpu else _CPU_SKETCHES)
    objective = ImageObjective(model, corpus, config, image)
    steps = sorted({max(1, round(level * (model.max_steps or 1))) for level in LEVELS})
    sums = torch.zeros(2, len(steps), dtype=torch.float64, device=device)
    scores: list[Tensor] = []
    with evaluating(model, device):
        for start in range(0, count, _BATCH):
            index = torch.arange(start, min(start + _BATCH, count), device=device)
            numbers = image_numbers(_SEED, index, corpus.kind.shape[1], 1)
            samples = objective.samples(index, numbers, symmetric=False)
            for row, present in enumerate((True, False)):
                shown = samples._replace(present=torch.full_like(samples.present, present))
                for i, t in enumerate(steps):
                    terms = objective.terms(shown, torch.full_like(index, t)[:, None], numbers.noise)
                    sums[row, i] += terms.sum()
            if start < (_GPU_SAMPLES if on_gpu else _CPU_SAMPLES):
                first = slice(0, None if on_gpu else _CPU_SAMPLES)
                features = model.encode(samples.pictures[first])
                options = SamplingOptions(
                    "predictor_corrector", min(_STEPS, model.max_steps or _STEPS), condition_on_image(features)
                )
                batch = model.sample(seeded_noise(_SEED, index[first]), options).most_likely()
                scores.append(primitive_f1(batch, samples.x0[first]))
    means = (sums / count).tolist()
    numbers_of: dict[str, float] = {}
    for name, losses in zip(("", "blank_"), means, strict=True):
        numbers_of |= {f"{name}t{t}": loss for t, loss in zip(steps, losses, strict=True)}
        numbers_of[f"{name}mean"] = sum(losses) / len(losses)
    numbers_of["f1"] = float(torch.cat(scores).mean())
    return numbers_of


def primitive_f1(found: SketchBatch, truth: SketchBatch) -> Float[Tensor, " batch"]:
    """The primitive F1 of clean sketches, about that of docs/tracing.md, on the device.

    A primitive is found if one of the same kind has every parameter near; each counts once, the nearest pairs first.
    """
    kind, true_kind = found.kind.argmax(dim=-1), truth.kind.argmax(dim=-1)
    apart = (found.params[:, :, None] - truth.params[:, None]).abs().amax(dim=-1)
    alike = (kind[:, :, None] == true_kind[:, None]) & (kind != layout.NONE)[:, :, None]
    apart = torch.where(alike & (apart <= _NEAR), apart, _FAR)
    hits = torch.zeros(len(apart), device=apart.device)
    rows = torch.arange(apart.shape[1], device=apart.device)
    for _ in rows:
        nearest, place = apart.flatten(1).min(dim=1)
        hits += nearest < _FAR
        i, j = (place // len(rows))[:, None, None], (place % len(rows))[:, None, None]
        apart = torch.where((rows[:, None] == i) | (rows == j), _FAR, apart)
    total = (kind != layout.NONE).sum(dim=1) + (true_kind != layout.NONE).sum(dim=1)
    return 2 * hits / total.clamp(min=1)


def start_image_training(request: ImageTrainRequest) -> Outcome:
    """Train an image encoder, and write the model with it to `out/model` when the budget is spent."""
    config, out = request.config, request.out
    device = find_device(request.device)
    if out.resolve() == request.data.resolve():
        raise RunError(f"{out}: the corpus is there; name another folder with --out")
    with exclusive_run(out):
        for folder in (out, *(out / name for name in FOLDERS)):
            remove_abandoned(folder)
        loaded = from_pretrained(request.model, device)
        torch.manual_seed(config.seed)
        system = make_image_model(loaded, request.image.encoder, request.image.adapter_rank)
        assert isinstance(loaded, SketchDNNSystem)  # noqa: S101 - `make_image_model` refuses others
        if request.init_from is not None:
            _start_from(system, request.init_from)
        try:
            corpus, validation = load_corpora(Dataset.open(request.data), device, 0)
        except torch.OutOfMemoryError as error:
            raise RunError(f"the corpus and the model do not fit on {device}; use another --device") from error
        outcome = train(
            system,
            corpus,
            config,
            out,
            validation=validation if validation is not None else corpus,
            resume=request.resume,
            hooks=request.hooks,
            make_run=partial(ImageRun, image=request.image, trunk=weights_hash(loaded)),
        )
        if outcome.finished:
            if isinstance(outcome.model, ImageConditionedSystem):
                loaded.attach_image(outcome.model)
            write_model(loaded, out / MODEL, request.model, eight_bit=request.eight_bit)
    return outcome


def _start_from(system: ImageConditionedSystem, model: Path) -> None:
    """Copy the weights of another model's image encoder, adapters and low-rank changes."""
    other = from_pretrained(model)
    image = other.image if isinstance(other, SketchDNNSystem) else None
    if image is None:
        raise RunError(f"{model}: that model has no image encoder")
    if image.image_config != system.image_config or image.rank != system.rank:
        raise RunError(f"{model}: that image encoder has another size; use its settings and --adapter-rank")
    system.load_state_dict(image_tensors(image), strict=False)
