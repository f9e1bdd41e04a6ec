"""One system: trained, judged, and asked for its bits on the common grid. What is there already is not done again.

DIR/<system>/run            the run: checkpoints, its log, the model
DIR/<system>/training.json  written when it has trained
DIR/<system>/report         the evaluation: scores, pages, the samples
DIR/<system>/grid.json      its bits on the grid of the token systems; written last
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
from sketchdnn.systems.baselines.tokens.system import TOKEN_GRID, TokenSystem
from sketchdnn.systems.devices import find_device
from sketchdnn.training.loop import Hooks, OnReport
from sketchdnn.training.start import MODEL, TrainRequest, start_training

from .page import page
from .plan import LABELS, SAMPLER, SIX, Plan, Planned, Request, label_of, make_plan, write_manifest
from .tables import Result, all_tables, as_csv, as_latex, as_markdown

RUN, TRAINING, REPORTS, GRID = "run", "training.json", "report", "grid.json"
# What the tables read of a training.
_PARTS = {"name": str, "training": dict, "train_sketches": int, "device": str, "steps": int, "seconds": float}


class StoppedError(SketchError):
    """A signal ended the training of a system, which was saved; the same command goes on with it."""

    def __init__(self, words: str, signal: int | None) -> None:
        super().__init__(words)
        self.signal = signal


def run_part(part: Planned, plan: Plan, judge: Evaluator, like: Protocol | None, on_report: OnReport | None) -> Result:
    """Do what is left to do of it. `like`: the protocol that it must share with the others."""
    folder = plan.request.out / part.named.folder
    _refuse_other_settings(part, folder)
    if not (folder / TRAINING).exists() and not _take_over(part, plan, folder):
        _train(part, plan, folder, on_report)
    if not (folder / REPORTS / REPORT).exists():
        model = str(folder / RUN / MODEL)
        label, sampler = part.named.label, part.sampler
        judge.evaluate(model, folder / REPORTS, is_model=True, expected=like, label=label, sampler=sampler)
    if not (folder / GRID).exists():
        _measure_bits(folder, plan, judge)
    return load_result(folder)


def load_result(folder: Path) -> Result:
    """What a finished part left."""
    training, grid = (_read(folder / name) for name in (TRAINING, GRID))
    for name, kind in _PARTS.items():
        if not isinstance(training.get(name), kind):
            raise FormatError(folder / TRAINING, f"is no record of a training: it has no {name}")
    if training["name"].partition(":")[0] not in LABELS:
        raise FormatError(folder / TRAINING, f"is of a system that is none, {quoted(training['name'])}")
    return Result(training["name"], folder, training, load_report(folder / REPORTS), grid)


def is_finished(folder: Path) -> bool:
    return all((folder / name).is_file() for name in (TRAINING, f"{REPORTS}/{REPORT}", GRID))


def _train(part: Planned, plan: Plan, folder: Path, on_report: OnReport | None) -> None:
    named, request = part.named, plan.request
    # One system after another goes through the same code; what was compiled for the last is of no use to the next.
    torch.compiler.reset()
    out = folder / RUN
    hooks = Hooks() if on_report is None else Hooks(on_report)
    outcome = start_training(
        TrainRequest(named.preset, part.training, request.data, out, plan.device, resume=True, hooks=hooks)
    )
    if not outcome.finished:
        raise StoppedError(
            f"{named.name} was stopped and saved at step {outcome.step:,}; the same command goes on", outcome.signal
        )
    seconds = _seconds(out / "log.csv")
    minutes = request.budget.minutes
    if minutes is not None and outcome.step == 1 and seconds > 60 * minutes:
        raise SketchError(
            f"a budget of {request.budget.words} is too small for one step of {named.name}, which took {seconds:.1f} "
            "seconds; give more --minutes, and another --out"
        )
    facts = {
        **_settings(part),
        "parameters": part.parameters,
        "budget": request.budget.words,
        "steps": outcome.step,
        "batch_size": part.training.batch_size,
        "samples_seen": outcome.step * part.training.batch_size,
        "train_sketches": plan.train_sketches,
        "seconds": seconds,
        "device": torch.cuda.get_device_name(plan.device) if plan.device != "cpu" else "the CPU",
    }
    del outcome
    if plan.device != "cpu":
        torch.cuda.empty_cache()
    _write(folder / TRAINING, facts)


def _take_over(part: Planned, plan: Plan, folder: Path) -> bool:
    """Whether the training of another part is its own as well: they differ in what no training knows of."""
    system = part.named.preset.make()
    mine = _learned(_settings(part), system.inference_only)
    for other in sorted(plan.request.out.glob(f"*/{TRAINING}")):
        there = _read(other)
        if _learned(there, system.inference_only) == mine and (other.parent / RUN / MODEL).is_dir():
            system.load_state_dict(from_pretrained(other.parent / RUN / MODEL).state_dict())
            save_pretrained(system, folder / RUN / MODEL)
            _write(
                folder / TRAINING,
                {**there, **_settings(part), "weights_of": there.get("weights_of") or there.get("name")},
            )
            return True
    return False


def _learned(settings: Mapping[str, Any], inference_only: Sequence[str]) -> dict[str, Any]:
    """What a training makes of settings: two that are alike here have the same weights."""
    config = settings.get("config")
    if isinstance(config, Mapping):  # else it is no record of a training, and like none
        config = {name: value for name, value in config.items() if name not in inference_only}
    learned = {"system": settings.get("system"), "config": config, "training": settings.get("training")}
    return dict(json.loads(json.dumps(learned)))


def _measure_bits(folder: Path, plan: Plan, judge: Evaluator) -> None:
    """On the grid of the token systems, for all alike."""
    settings = plan.request.settings
    system = from_pretrained(folder / RUN / MODEL).to_device(plan.device)
    # A sequence in the one order that its primitives can have is as likely as the set of them.
    exact = isinstance(system, TokenSystem) and system.config.order == "sorted"
    facts: dict[str, Any] = {"ordered": system.ordered, "exact": exact}
    reason = _off_the_grid(system) if settings.likelihood else "likelihoods were not asked for"
    if reason is None:
        some = judge.dataset.split("test").compact[: settings.likelihood_sketches]
        found = measure_likelihood(system, some, draws=settings.likelihood_draws, seed=settings.seed, grid=TOKEN_GRID)
        facts["bits"] = to_json(found)
    _write(folder / GRID, {**facts, "reason": reason})


def _off_the_grid(system: System) -> str | None:
    """Why its numbers do not lie in the cells of the common grid, if they do not."""
    if isinstance(system, TokenSystem) and system.grid is None:
        return "it tells arcs by three points, whose cells are not those of the others; vitruvion:arcs=sweep has them"
    if system.rows.arc_scalar != "sweep":
        return "it tells arcs by a signed radius, and the common grid is one of sweeps"
    return None


def _settings(part: Planned) -> dict[str, Any]:
    """What a part is known by."""
    named = part.named
    return {
        "name": named.name,
        "system": named.system,
        "preset": named.preset.name,
        "config": config_to_dict(named.preset.config),
        "training": part.training.identity(),
    }


def _refuse_other_settings(part: Planned, folder: Path) -> None:
    """The same name may mean other settings in another version of the program."""
    if not (folder / TRAINING).exists():
        return
    there = _read(folder / TRAINING)
    for name, now in json.loads(json.dumps(_settings(part))).items():
        if there.get(name) != now:
            raise FormatError(folder, f"was trained with another {name} than {part.named.name} has; name another --out")


def _seconds(log: Path) -> float:
    """Time in training, parts before a stop included."""
    with log.open(newline="", encoding="utf-8") as file:
        return max((float(row["seconds"]) for row in csv.DictReader(file)), default=0.0)


def _read(path: Path) -> dict[str, Any]:
    try:
        found = load_json(path)
    except (OSError, ValueError) as error:
        raise FormatError(path, f"cannot be read ({error}); delete it to have it made again") from error
    if not isinstance(found, dict):
        raise FormatError(path, "is not what it should be; delete it to have it made again")
    return found


def _write(path: Path, facts: Mapping[str, Any]) -> None:
    with atomic_write(path) as temporary:
        temporary.write_text(json.dumps(facts, indent=1, allow_nan=False) + "\n", encoding="utf-8")


__all__ = ["Reproduction", "StoppedError", "prepared", "reproduce", "results_in", "write_all"]

# Sketches of each system in the figure.
SHOWN = 16
PAGE = "reproduction.md"


@dataclass(frozen=True, slots=True)
class Reproduction:
    """A plan, and what its systems are judged with."""

    plan: Plan
    judge: Evaluator


def prepared(
    request: Request,
    *,
    on_stage: OnStage = lambda name, share: None,
    extractor: Callable[[str], Extractor] | None = None,
) -> Reproduction:
    """All that can be refused is refused here; nothing is written. `extractor` is for tests only."""
    if request.out.resolve() == request.data.resolve():
        raise FormatError(request.out, "is the corpus; name another --out")
    device = find_device(request.device)
    judged = EvaluationRequest(
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
    judge = Evaluator(judged, on_stage=on_stage, extractor=extractor)
    return Reproduction(make_plan(request, judge, device), judge)


def reproduce(
    reproduction: Reproduction,
    *,
    on_part: Callable[[str], None] = lambda label: None,
    on_report: OnReport | None = None,
) -> list[Path]:
    """Do what the plan says and is not done yet. Whatever ends it, what is finished stays, and has its tables."""
    plan, judge = reproduction.plan, reproduction.judge
    out = plan.request.out
    written: list[Path] = []
    with exclusive_run(out):
        remove_abandoned(out)
        write_manifest(plan)
        for part in plan.parts:
            on_part(part.named.label)
            like = next((Protocol.from_json(one.report["protocol"]) for one in results_in(out)), None)
            run_part(part, plan, judge, like, on_report)
            written = write_all(plan, judge)
    return written


def results_in(out: Path) -> list[Result]:
    """All finished systems of a folder, the six first, in the paper's order."""
    found = [load_result(path) for path in sorted(out.iterdir()) if path.is_dir() and is_finished(path)]
    order = [name.partition(":")[0] for name in SIX]
    found.sort(key=lambda one: (one.is_variant and one.name not in SIX, order.index(one.system), one.name))
    return found


def write_all(plan: Plan, judge: Evaluator) -> list[Path]:
    """Tables, figure and page of all that is there, whoever asked for it."""
    out = plan.request.out
    results = results_in(out)
    refuse_incomparable({result.name: Protocol.from_json(result.report["protocol"]) for result in results})
    tables = all_tables(results)
    files = {
        f"{table.name}{ending}": words(table)
        for table in tables
        for ending, words in ((".md", as_markdown), (".csv", as_csv), (".tex", as_latex))
    }
    sources = _sources(results, judge)
    figure = write_comparison_figure(out, sources) if len(sources) > 1 else []
    budget, command = plan.request.budget.words, plan.request.command
    files[PAGE] = page(results, tables, budget=budget, command=command, has_figure=bool(figure))
    for name, words in files.items():
        with atomic_write(out / name) as temporary:
            temporary.write_text(words, encoding="utf-8")
    return [out / PAGE, *(out / name for name in files if name != PAGE), *figure]


def _sources(results: Sequence[Result], judge: Evaluator) -> list[Source]:
    """The data above, systems below, each with the first that it drew, if they were kept."""
    drawn = ((label_of(result.name), _first_drawn(result.folder / REPORTS / SAMPLES)) for result in results)
    real = Source("data", random_sample(judge.real_sketches(), SHOWN, seed=0))
    return [real, *(Source(label, sketches) for label, sketches in drawn if sketches)]


def _first_drawn(path: Path) -> list[Sketch]:
    if not path.is_file():
        return []
    return list(islice((found for found in scan(path) if isinstance(found, Sketch)), SHOWN))
