"""The run of a reproduction: train and evaluate every system, and write the tables of all finished systems.

Finished stages are skipped.

DIR/<system>/run            the training run: checkpoints, its log, the model
DIR/<system>/training.json  written after training
DIR/<system>/report         the evaluation: scores, pages, samples
DIR/<system>/grid.json      bits on the grid of the token systems; written last
"""

from __future__ import annotations

import csv
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import torch

from sketchdnn.errors import FormatError, SketchError, quoted
from sketchdnn.evaluation.comparison import Source, random_sample, write_comparison_figure
from sketchdnn.evaluation.estimates import to_json
from sketchdnn.evaluation.evaluate import EvaluationRequest, Evaluator
from sketchdnn.evaluation.features import Extractor
from sketchdnn.evaluation.likelihood import measure_likelihood
from sketchdnn.evaluation.protocol import Protocol, refuse_incomparable
from sketchdnn.evaluation.report import REPORT, SAMPLES, load_report
from sketchdnn.evaluation.scores import OnStage
from sketchdnn.formats import scan
from sketchdnn.geometry import Sketch
from sketchdnn.io import atomic_write, exclusive_run, load_json, remove_abandoned
from sketchdnn.systems import System, config_to_dict, from_pretrained, save_pretrained
from sketchdnn.systems.aliases import current_settings, rename_report_keys
from sketchdnn.systems.baselines.tokens.system import TokenSystem
from sketchdnn.systems.baselines.tokens.tokens import TOKEN_GRID
from sketchdnn.systems.devices import find_device
from sketchdnn.training.loop import Hooks, OnReport
from sketchdnn.training.start import MODEL, TrainRequest, start_training

from .page import make_page
from .plan import (
    GRID,
    LABELS,
    PAPER_SYSTEMS,
    SAMPLER,
    TRAINING,
    Plan,
    PlannedSystem,
    ReproductionRequest,
    current_name,
    find_folder,
    make_plan,
    system_label,
    write_manifest,
)
from .tables import Result, all_tables, as_csv, as_latex, as_markdown

RUN, REPORTS = "run", "report"
PAGE = "reproduction.md"
# Sketches of each system in the figure.
FIGURE_SKETCHES = 16
# The fields of training.json that the tables read.
_FIELDS = {"name": str, "training": dict, "train_sketches": int, "device": str, "steps": int, "seconds": float}


class StoppedError(SketchError):
    """A signal stopped the training of a system, which was saved; the same command continues it."""

    def __init__(self, message: str, signal: int | None) -> None:
        super().__init__(message)
        self.signal = signal


def run_system(
    planned: PlannedSystem, plan: Plan, evaluator: Evaluator, protocol: Protocol | None, on_report: OnReport | None
) -> Result:
    """Run the unfinished stages of a system.

    Args:
        planned: The system.
        plan: The plan that it is part of.
        evaluator: Evaluates the trained model.
        protocol: The protocol of the other systems, which it must share.
        on_report: Called with reports of training.
    """
    folder = find_folder(plan.request.out, planned.variant.name)
    _check_record(planned, folder)
    if not (folder / TRAINING).exists() and not _reuse_weights(planned, plan, folder):
        _train(planned, plan, folder, on_report)
    if not (folder / REPORTS / REPORT).exists():
        model = str(folder / RUN / MODEL)
        label, sampler = planned.variant.label, planned.sampler
        evaluator.evaluate(model, folder / REPORTS, is_model=True, expected=protocol, label=label, sampler=sampler)
    if not (folder / GRID).exists():
        _measure_grid_bits(folder, plan, evaluator)
    return load_result(folder)


def load_result(folder: Path) -> Result:
    """The result of a finished system."""
    training, grid = _read_training(folder), rename_report_keys(_read(folder / GRID))
    for name, kind in _FIELDS.items():
        if not isinstance(training.get(name), kind):
            raise FormatError(folder / TRAINING, f"is not a record of a training: it has no {name}")
    if training["name"].partition(":")[0] not in LABELS:
        raise FormatError(folder / TRAINING, f"is of an unknown system, {quoted(training['name'])}")
    return Result(training["name"], folder, training, load_report(folder / REPORTS), grid)


def is_finished(folder: Path) -> bool:
    return all((folder / name).is_file() for name in (TRAINING, f"{REPORTS}/{REPORT}", GRID))


def _train(planned: PlannedSystem, plan: Plan, folder: Path, on_report: OnReport | None) -> None:
    variant, request = planned.variant, plan.request
    # Code compiled for the previous system is of no use.
    torch.compiler.reset()
    out = folder / RUN
    hooks = Hooks() if on_report is None else Hooks(on_report)
    outcome = start_training(
        TrainRequest(variant.preset, planned.training, request.data, out, plan.device, resume=True, hooks=hooks)
    )
    if not outcome.finished:
        raise StoppedError(
            f"{variant.name} was stopped and saved at step {outcome.step:,}; the same command continues it",
            outcome.signal,
        )
    seconds = _training_seconds(out / "log.csv")
    minutes = request.budget.minutes
    if minutes is not None and outcome.step == 1 and seconds > 60 * minutes:
        raise SketchError(
            f"a budget of {request.budget.text} is too small for one step of {variant.name}, which took {seconds:.1f} "
            "seconds; give more --minutes, and another --out"
        )
    record = {
        **training_settings(planned),
        "parameters": planned.parameters,
        "budget": request.budget.text,
        "steps": outcome.step,
        "batch_size": planned.training.batch_size,
        "samples_seen": outcome.step * planned.training.batch_size,
        "train_sketches": plan.train_sketches,
        "seconds": seconds,
        "device": torch.cuda.get_device_name(plan.device) if plan.device != "cpu" else "the CPU",
    }
    del outcome
    if plan.device != "cpu":
        torch.cuda.empty_cache()
    _write(folder / TRAINING, record)


def _reuse_weights(planned: PlannedSystem, plan: Plan, folder: Path) -> bool:
    """Copy the weights of a trained system that differs in inference-only settings alone; False if there is none."""
    system = planned.variant.preset.make()
    settings = training_settings(planned)
    identity = _weights_identity(settings, system.inference_only)
    for path in sorted(plan.request.out.glob(f"*/{TRAINING}")):
        other = path.parent
        record = _read_training(other)
        if _weights_identity(record, system.inference_only) == identity and (other / RUN / MODEL).is_dir():
            system.load_state_dict(from_pretrained(other / RUN / MODEL).state_dict())
            save_pretrained(system, folder / RUN / MODEL)
            weights_of = record.get("weights_of") or record.get("name")
            _write(folder / TRAINING, {**record, **settings, "weights_of": weights_of})
            return True
    return False


def _weights_identity(settings: Mapping[str, Any], inference_only: Sequence[str]) -> dict[str, Any]:
    """The settings that weights depend on."""
    config = settings.get("config")
    if isinstance(config, Mapping):
        config = {name: value for name, value in config.items() if name not in inference_only}
    identity = {"system": settings.get("system"), "config": config, "training": settings.get("training")}
    return dict(json.loads(json.dumps(identity)))


def _measure_grid_bits(folder: Path, plan: Plan, evaluator: Evaluator) -> None:
    """Write the likelihood on the grid of the token systems."""
    settings = plan.request.settings
    system = from_pretrained(folder / RUN / MODEL).to_device(plan.device)
    # If primitives are sorted, the likelihood of the sequence is that of the set.
    exact = isinstance(system, TokenSystem) and system.config.order == "sorted"
    result: dict[str, Any] = {"ordered": system.ordered, "exact": exact}
    reason = _why_off_grid(system) if settings.likelihood else "likelihoods were not requested"
    if reason is None:
        test = evaluator.dataset.split("test").compact[: settings.likelihood_sketches]
        likelihood = measure_likelihood(
            system, test, draws=settings.likelihood_draws, seed=settings.seed, grid=TOKEN_GRID
        )
        result["bits"] = to_json(likelihood)
    _write(folder / GRID, {**result, "reason": reason})


def _why_off_grid(system: System) -> str | None:
    """Why the parameters of a system are not on the common grid; None if they are."""
    if isinstance(system, TokenSystem) and system.grid is None:
        return "its arcs are three points, which have another grid; vitruvion:arcs=sweep has the common one"
    if system.rows.arc_scalar != "sweep":
        return "its arcs have a signed radius, and the common grid has sweeps"
    return None


def training_settings(planned: PlannedSystem) -> dict[str, Any]:
    """The settings that identify a training."""
    preset = planned.variant.preset
    return {
        "name": planned.variant.name,
        "system": preset.system,
        "preset": preset.name,
        "config": config_to_dict(preset.config),
        "training": planned.training.identity(),
    }


def _check_record(planned: PlannedSystem, folder: Path) -> None:
    """Raises FormatError if the folder has a training of the same name with other settings.

    Names of presets may change between versions; their settings are compared.
    """
    if not (folder / TRAINING).exists():
        return
    record = _read_training(folder)
    for name, value in json.loads(json.dumps(training_settings(planned))).items():
        if name != "preset" and record.get(name) != value:
            raise FormatError(
                folder, f"was trained with another {name} than {planned.variant.name} has; name another --out"
            )


def _read_training(folder: Path) -> dict[str, Any]:
    """The record of a training, with the present names of systems and settings."""
    record = _read(folder / TRAINING)
    if isinstance(record.get("name"), str):
        record["name"] = current_name(record["name"])
    for name in ("config", "training"):
        if isinstance(record.get(name), dict):
            record[name] = current_settings(record[name])
    return record


def _training_seconds(log: Path) -> float:
    """The time of training, including parts before a stop."""
    with log.open(newline="", encoding="utf-8") as file:
        return max((float(row["seconds"]) for row in csv.DictReader(file)), default=0.0)


def _read(path: Path) -> dict[str, Any]:
    try:
        content = load_json(path)
    except (OSError, ValueError) as error:
        raise FormatError(path, f"cannot be read ({error}); delete it to write it again") from error
    if not isinstance(content, dict):
        raise FormatError(path, "holds no JSON object; delete it to write it again")
    return content


def _write(path: Path, content: Mapping[str, Any]) -> None:
    with atomic_write(path) as temporary:
        temporary.write_text(json.dumps(content, indent=1, allow_nan=False) + "\n", encoding="utf-8")


@dataclass(frozen=True, slots=True)
class Reproduction:
    """A plan, and the evaluator of its systems."""

    plan: Plan
    evaluator: Evaluator


def plan_reproduction(
    request: ReproductionRequest,
    *,
    on_stage: OnStage = lambda name, share: None,
    extractor: Callable[[str], Extractor] | None = None,
) -> Reproduction:
    """Check a request and plan it, without writing anything. `extractor` is for tests only."""
    if request.out.resolve() == request.data.resolve():
        raise FormatError(request.out, "is the corpus; name another --out")
    device = find_device(request.device)
    evaluation = EvaluationRequest(
        data=request.data,
        settings=request.settings,
        seed=request.seed,
        steps=request.steps,
        sampler=SAMPLER,
        inception=request.inception,
        device=device,
        cache=request.cache,
        command=request.command,
    )
    evaluator = Evaluator(evaluation, on_stage=on_stage, extractor=extractor)
    return Reproduction(make_plan(request, evaluator, device), evaluator)


def reproduce(
    reproduction: Reproduction,
    *,
    on_system: Callable[[str], None] = lambda label: None,
    on_report: OnReport | None = None,
) -> list[Path]:
    """Run the unfinished stages of a plan. The tables are written after each system.

    Returns:
        The files written.
    """
    plan, evaluator = reproduction.plan, reproduction.evaluator
    out = plan.request.out
    written: list[Path] = []
    with exclusive_run(out):
        remove_abandoned(out)
        write_manifest(plan)
        for planned in plan.systems:
            on_system(planned.variant.label)
            protocol = next((Protocol.from_json(result.report["protocol"]) for result in load_results(out)), None)
            run_system(planned, plan, evaluator, protocol, on_report)
            written = write_tables(plan, evaluator)
    return written


def load_results(out: Path) -> list[Result]:
    """All finished systems of a folder, those of the paper first, in its order."""
    results = [load_result(path) for path in sorted(out.iterdir()) if path.is_dir() and is_finished(path)]
    order = [name.partition(":")[0] for name in PAPER_SYSTEMS]
    results.sort(key=lambda r: (r.is_variant and r.name not in PAPER_SYSTEMS, order.index(r.system), r.name))
    return results


def write_tables(plan: Plan, evaluator: Evaluator) -> list[Path]:
    """Write the tables, the figure and the page of all finished systems."""
    out = plan.request.out
    results = load_results(out)
    refuse_incomparable({result.name: Protocol.from_json(result.report["protocol"]) for result in results})
    tables = all_tables(results)
    files = {
        f"{table.name}{suffix}": convert(table)
        for table in tables
        for suffix, convert in ((".md", as_markdown), (".csv", as_csv), (".tex", as_latex))
    }
    sources = _figure_sources(results, evaluator)
    figure = write_comparison_figure(out, sources) if len(sources) > 1 else []
    budget, command = plan.request.budget.text, plan.request.command
    files[PAGE] = make_page(results, tables, budget=budget, command=command, has_figure=bool(figure))
    for name, text in files.items():
        with atomic_write(out / name) as temporary:
            temporary.write_text(text, encoding="utf-8")
    return [out / PAGE, *(out / name for name in files if name != PAGE), *figure]


def _figure_sources(results: Sequence[Result], evaluator: Evaluator) -> list[Source]:
    """The data, and the first samples of each system if they were kept."""
    samples = ((system_label(result.name), _first_samples(result.folder / REPORTS / SAMPLES)) for result in results)
    real = Source("data", random_sample(evaluator.real_sketches(), FIGURE_SKETCHES, seed=0))
    return [real, *(Source(label, sketches) for label, sketches in samples if sketches)]


def _first_samples(path: Path) -> list[Sketch]:
    if not path.is_file():
        return []
    return list(islice((item for item in scan(path) if isinstance(item, Sketch)), FIGURE_SKETCHES))
