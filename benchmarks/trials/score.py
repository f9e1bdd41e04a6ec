"""Score the samples of trials with the protocol of `sketchdnn evaluate`, and write a page with a table and a chart.

OUT/<trial>-<seed>/<draw>/report.json   the report of each draw; what is there is not scored again
OUT/scores.json, OUT/trials.md          all draws
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.results import OnStage, ignore_stage, write_page
from sketchdnn.data.loader import Dataset
from sketchdnn.errors import SketchError
from sketchdnn.evaluation.comparison import Source, random_sample, write_comparison_figure
from sketchdnn.evaluation.evaluate import EvaluationRequest, Evaluator, MakeExtractor
from sketchdnn.evaluation.protocol import Settings
from sketchdnn.evaluation.report import load_report
from sketchdnn.evaluation.report_format import format_interval, format_percent, lookup
from sketchdnn.formats import read
from sketchdnn.render.figures import BLUE, INK, ORANGE, plot_style, save_figure
from sketchdnn.representation import decode_compact

from .experiments import Experiment
from .run import COUNT, SAMPLES, Piece, read_training

SETTINGS = Settings(count=COUNT, against_train=0, likelihood=False, corruption=False)
SCORES, PAGE = "scores.json", "trials.md"
# The scores of a page: a title, the path in a report, and the path of real sketches.
_TEST = "scores.test"
MEASURES: Mapping[str, tuple[str, str, str]] = {
    "fid": ("FID ↓", f"{_TEST}.system.fid", f"{_TEST}.floor.fid"),
    "precision": ("precision ↑", f"{_TEST}.system.precision", f"{_TEST}.floor.precision"),
    "recall": ("recall ↑", f"{_TEST}.system.recall", f"{_TEST}.floor.recall"),
    "ends": ("ends within 0.02 ↑", "validity.samples.gaps.within_loose", "validity.test.gaps.within_loose"),
    "closed": ("closed profiles ↑", "validity.samples.loose.closed", "validity.test.loose.closed"),
    "arcs": ("arcs", "validity.samples.kinds.arc.estimate", "validity.test.kinds.arc.estimate"),
    "construction": (
        "construction",
        "validity.samples.construction.construction.estimate",
        "validity.test.construction.construction.estimate",
    ),
}
_SHARES = ("ends", "closed", "arcs", "construction")
# The measures of the chart, in which steps of a ladder are compared.
_COMPARED = ("fid", "ends", "closed")
_SHEET = 16

Value = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class ScoreRequest:
    """Which samples to score, and where the corpora are."""

    experiment: Experiment
    corpora: Path
    out: Path
    settings: Settings = field(default_factory=lambda: SETTINGS)
    inception: Path | None = None
    device: str = "auto"
    cache: Path | None = None


@dataclass(frozen=True, slots=True)
class Score:
    """The scores of one draw with one seed; `values` and `real` are estimates by measure."""

    draw: str
    seed: int
    values: Mapping[str, Value]
    real: Mapping[str, Value]
    training: Mapping[str, Any]


def score_trials(
    request: ScoreRequest, *, on_stage: OnStage = ignore_stage, extractor: MakeExtractor | None = None
) -> list[Path]:
    """Score what has no report yet, and write the page of all.

    Returns:
        The files of the page.
    """
    evaluator: Evaluator | None = None
    for folder, draw, label in _samples(request):
        if (folder / draw / "report.json").exists():
            continue
        on_stage(f"{folder.name}: {label}")
        evaluator = evaluator or _evaluator(request, extractor)
        evaluator.evaluate(str(folder / f"{draw}{SAMPLES}"), folder / draw, is_model=False, label=label)
    scores = load_scores(request)
    if not scores:
        raise SketchError(f"{request.out} holds no samples of the experiment {request.experiment.name}")
    return _write(request, scores)


def load_scores(request: ScoreRequest) -> list[Score]:
    """The scores of all draws that have a report, in the order of the experiment."""
    scores = []
    for folder, draw, _ in _samples(request):
        if (folder / draw / "report.json").exists():
            report = load_report(folder / draw)
            values, real = (
                {name: _estimate(lookup(report, paths[side])) for name, paths in MEASURES.items()} for side in (1, 2)
            )
            scores.append(Score(draw, int(folder.name.rpartition("-")[2]), values, real, read_training(folder)))
    return scores


def _samples(request: ScoreRequest) -> list[tuple[Path, str, str]]:
    """The folder, name and label of every draw that has samples."""
    experiment = request.experiment
    return [
        (folder, draw.name, draw.label)
        for trial in experiment.trials
        for draw in trial.draws
        for seed in experiment.seeds
        for folder in [request.out / Piece(trial, seed).name]
        if (folder / f"{draw.name}{SAMPLES}").is_file()
    ]


def _evaluator(request: ScoreRequest, extractor: MakeExtractor | None) -> Evaluator:
    evaluation = EvaluationRequest(
        data=request.corpora / request.experiment.reference,
        settings=request.settings,
        inception=request.inception,
        device=request.device,
        cache=request.cache,
        save_samples=False,
    )
    return Evaluator(evaluation, extractor=extractor)


def _estimate(value: Any) -> Value:
    """A value with its interval; a plain number has none."""
    return dict(value) if isinstance(value, Mapping) else {"value": value}


def apart(first: Value, second: Value) -> bool:
    """Whether two estimates can be told apart: neither interval reaches the other.

    >>> apart({"value": 1, "low": 0, "high": 2}, {"value": 4, "low": 3, "high": 5})
    True
    >>> apart({"value": 1, "low": 0, "high": 2}, {"value": 3, "low": 2, "high": 4})
    False
    """
    return bool(first["high"] < second["low"] or second["high"] < first["low"])


def summarize_seeds(values: Sequence[float]) -> dict[str, float]:
    """Mean, standard deviation and 95 % interval of the mean (Student's t) of a value over seeds.

    >>> summarize_seeds([1.0, 2.0, 3.0])["mean"], summarize_seeds([1.0, 2.0, 3.0])["std"]
    (2.0, 1.0)
    """
    from scipy.stats import t

    count, mean = len(values), float(np.mean(values))
    if count < 2:
        return {"mean": mean, "std": math.nan, "low": math.nan, "high": math.nan}
    std = float(np.std(values, ddof=1))
    half = float(t.ppf(0.975, count - 1)) * std / math.sqrt(count)
    return {"mean": mean, "std": std, "low": mean - half, "high": mean + half}


def _write(request: ScoreRequest, scores: Sequence[Score]) -> list[Path]:
    experiment, out = request.experiment, request.out
    labels = experiment.labels
    records = [
        {"draw": s.draw, "label": labels[s.draw], "seed": s.seed, **s.values, "training": s.training} for s in scores
    ]
    text = json.dumps({"real": scores[0].real, "draws": records}, indent=1, ensure_ascii=False) + "\n"
    write_page(out / SCORES, text)
    pictures = [*draw_chart(scores, labels, out), *_draw_samples(request)]
    write_page(out / PAGE, make_page(experiment, scores))
    return [out / PAGE, out / SCORES, *pictures]


def make_page(experiment: Experiment, scores: Sequence[Score]) -> str:
    """The page as Markdown: what was trained, and the scores."""
    labels = experiment.labels
    tables = {"ladder": _ladder_table, "seeds": _seeds_table, "plain": _plain_table}[experiment.form](scores, labels)
    missing = [label for name, label in labels.items() if name not in {score.draw for score in scores}]
    lines = [f"# {experiment.title}", "", _budget_text(experiment, scores), ""]
    if missing:
        lines += [f"Not measured yet: {'; '.join(missing)}.", ""]
    lines += [*tables, "", "![scores](scores.png)", "", *_training_table(scores), ""]
    if experiment.form == "plain":
        lines += _errors_table(scores[0].training)
    return "\n".join(lines)


def _budget_text(experiment: Experiment, scores: Sequence[Score]) -> str:
    minutes = sorted({float(score.training["minutes"]) for score in scores})
    devices = " or ".join(dict.fromkeys(str(score.training["device"]) for score in scores))
    return (
        f"Each training took {' or '.join(f'{m:g}' for m in minutes)} minutes of {devices}, compiling included. "
        f"Samples are scored before repair against the test split of the corpus `{experiment.reference}`. "
        "Intervals are 95 %."
    )


def _text(name: str, value: Value) -> str:
    return format_percent(value) if name in _SHARES else format_interval(value)


def _row(label: str, values: Mapping[str, Value]) -> list[str]:
    return [label, *(_text(name, values[name]) for name in MEASURES)]


def _table(head: Iterable[str], rows: Iterable[Sequence[str]]) -> list[str]:
    head = list(head)
    return [f"| {' | '.join(row)} |" for row in (head, ["---", *["---:"] * (len(head) - 1)], *rows)]


def _plain_table(scores: Sequence[Score], labels: Mapping[str, str]) -> list[str]:
    rows = [_row(labels[score.draw], score.values) for score in scores]
    return _table(["", *(title for title, _, _ in MEASURES.values())], [*rows, _row("real sketches", scores[0].real)])


def _ladder_table(scores: Sequence[Score], labels: Mapping[str, str]) -> list[str]:
    """With a column that names the measures in which a row differs from the row above."""
    rows = []
    for number, score in enumerate(scores):
        before = scores[number - 1] if number else None
        differs = [] if before is None else differing(before, score)
        verdict = "—" if before is None else ", ".join(differs).replace("fid", "FID") or "not told apart"
        rows.append([*_row(labels[score.draw], score.values), verdict])
    rows.append([*_row("real sketches", scores[0].real), "—"])
    merged = [
        [" ".join(labels[score.draw] for score in group), *(_text(n, group[-1].values[n]) for n in _COMPARED)]
        for group in merge_steps(scores)
    ]
    return [
        *_table(["", *(title for title, _, _ in MEASURES.values()), "differs from the row above in"], rows),
        "",
        "Two rows differ where their intervals do not touch. The intervals do not include the variation between seeds.",
        "",
        "Steps that do not differ from the first of their group, merged; the values are those of the last step:",
        "",
        *_table(["", *(MEASURES[n][0] for n in _COMPARED)], merged),
    ]


def differing(first: Score, second: Score) -> list[str]:
    """The compared measures in which two draws can be told apart."""
    return [name for name in _COMPARED if apart(first.values[name], second.values[name])]


def merge_steps(scores: Sequence[Score]) -> list[list[Score]]:
    """Consecutive draws in groups: a draw joins a group if it cannot be told apart from the first of it."""
    groups: list[list[Score]] = []
    for score in scores:
        if groups and not differing(groups[-1][0], score):
            groups[-1].append(score)
        else:
            groups.append([score])
    return groups


def _seeds_table(scores: Sequence[Score], labels: Mapping[str, str]) -> list[str]:
    """Mean, standard deviation over seeds, and the interval of the mean."""
    rows = []
    for name, label in labels.items():
        some = [score for score in scores if score.draw == name]
        if some:
            cells = [_seeds_text(m, [float(score.values[m]["value"]) for score in some]) for m in MEASURES]
            rows.append([label, str(len(some)), *cells])
    rows.append(["real sketches", "—", *_row("", scores[0].real)[1:]])
    head = ["", "seeds", *(title for title, _, _ in MEASURES.values())]
    note = "Each cell is the mean over the seeds ± their standard deviation (in brackets the interval of the mean)."
    return [note, "", *_table(head, rows)]


def _seeds_text(measure: str, values: Sequence[float]) -> str:
    factor, digits, unit = (100, 1, " %") if measure in _SHARES else (1, 2 if measure == "fid" else 3, "")
    summary = summarize_seeds([factor * value for value in values])
    if math.isnan(summary["std"]):
        return f"{summary['mean']:.{digits}f}{unit}"
    numbers = [f"{summary[name]:.{digits}f}" for name in ("mean", "std", "low", "high")]
    return f"{numbers[0]} ± {numbers[1]}{unit} ({numbers[2]} to {numbers[3]})".replace("-", "−")


def _errors_table(training: Mapping[str, Any]) -> list[str]:
    """The errors at each noise level with both weights."""
    averaged, last = (training["errors"][name] for name in ("averaged", "last"))
    rows = [
        [str(a["t"]), *(f"{value:.4f}" for value in (a["noise"], a["error"], b["error"])), f"{a['right_kinds']:.1%}"]
        for a, b in zip(averaged, last, strict=True)
    ]
    head = ("t", "noise", "error, averaged weights", "error, last weights", "right kinds, averaged weights")
    text = (
        "Root mean squares over the ends of lines of 1,000 validation sketches whose larger side is 2, noised to step "
        "t and denoised at once. Where the error exceeds the noise, the input alone is a better estimate."
    )
    return ["## Errors by noise level", "", text, "", *_table(head, rows), ""]


def _training_table(scores: Sequence[Score]) -> list[str]:
    trainings = {str(score.training["name"]): score for score in scores}
    rows = []
    for name, score in trainings.items():
        training = score.training
        passes = int(training["samples_seen"]) / int(training["train_sketches"])
        numbers = [f"{int(training[key]):,}" for key in ("parameters", "steps", "samples_seen")]
        rows.append([name, str(training["corpus"]), *numbers, f"{passes:,.0f}"])
    return _table(["training", "corpus", "parameters", "steps", "training samples", "passes"], rows)


def draw_chart(scores: Sequence[Score], labels: Mapping[str, str], out: Path) -> list[Path]:
    """FID, ends and closed profiles of each draw as bars with intervals; a line marks real sketches.

    Several seeds of a draw are dots on the bar of their mean.
    """
    names = [name for name in labels if any(score.draw == name for score in scores)]
    panels = {"fid": 1.0, "ends": 100.0, "closed": 100.0}
    with plot_style(math=False) as make_figure:
        figure = make_figure(figsize=(11.5, 1.2 + 0.34 * len(names)), layout="constrained")
        for number, (axes, (measure, factor)) in enumerate(
            zip(figure.subplots(1, len(panels), sharey=True), panels.items(), strict=True)
        ):
            for row, name in enumerate(names):
                some = [score.values[measure] for score in scores if score.draw == name]
                points = [factor * float(value["value"]) for value in some]
                mean = float(np.mean(points))
                axes.barh(row, mean, color=BLUE, height=0.62)
                end = max(points)
                if len(some) > 1:
                    axes.plot(points, [row] * len(points), "o", color=INK, markersize=3)
                elif some[0].get("low") is not None:
                    low, high = factor * some[0]["low"], factor * some[0]["high"]
                    axes.plot([low, high], [row, row], color=INK, linewidth=1.2)
                    end = high
                axes.text(end, row, f" {mean:.1f}", va="center", ha="left", fontsize=8)
            real = scores[0].real[measure].get("value")
            if real is not None:
                axes.axvline(factor * float(real), color=ORANGE, linewidth=1.2)
            axes.set_title({"fid": "FID", "ends": "ends within 0.02, %", "closed": "closed profiles, %"}[measure])
            axes.margins(x=0.14)
            if number == 0:
                axes.set_yticks(range(len(names)), [labels[name] for name in names])
                axes.invert_yaxis()
        return save_figure(figure, out, "scores")


def _draw_samples(request: ScoreRequest) -> list[Path]:
    """A contact sheet: real sketches, then samples of each draw of the first seed."""
    sources = [
        Source(draw, random_sample(list(read(folder / f"{draw}{SAMPLES}").sketches), _SHEET, seed=0))
        for folder, draw, _ in _samples(request)
        if folder.name.endswith(f"-{request.experiment.seeds[0]}")
    ]
    if not sources:
        return []
    test = Dataset.open(request.corpora / request.experiment.reference).split(request.settings.split).compact
    real = Source("real sketches", [decoded.sketch for decoded in decode_compact(test[:_SHEET])])
    return write_comparison_figure(request.out, [real, *sources])
