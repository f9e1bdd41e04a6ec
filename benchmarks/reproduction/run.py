"""Everything in turn: each system trained and judged, and after each of them the tables of all that is there."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from sketchdnn.errors import FormatError
from sketchdnn.evaluation.comparison import Source, random_sample, write_comparison_figure
from sketchdnn.evaluation.evaluate import EvaluationRequest, Evaluator
from sketchdnn.evaluation.features import Extractor
from sketchdnn.evaluation.protocol import Protocol, refuse_incomparable
from sketchdnn.evaluation.report import SAMPLES
from sketchdnn.evaluation.scores import OnStage
from sketchdnn.formats import scan
from sketchdnn.geometry import Sketch
from sketchdnn.io import atomic_write, exclusive_run, remove_abandoned
from sketchdnn.systems.devices import find_device
from sketchdnn.training.loop import OnReport

from .forms import as_csv, as_latex, as_markdown
from .names import SIX, label_of
from .page import page
from .part import REPORTS, Result, StoppedError, is_finished, load_result, run_part
from .plan import SAMPLER, Plan, Request, make_plan, write_manifest
from .tables import all_tables

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
