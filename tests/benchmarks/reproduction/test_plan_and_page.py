"""Systems by name: settings, canonical names, and refusals; and the paper's claims against numbers."""

import re
from collections.abc import Callable
from dataclasses import replace

import pytest

from benchmarks.reproduction import PAPER_SYSTEMS, parse_systems
from benchmarks.reproduction.page import CLAIMS, FAILS, HOLDS, NOT_MEASURED, check_claims
from benchmarks.reproduction.tables import FIDELITY, LIKELIHOOD, PAPER, Cell, ResultTable, Row
from sketchdnn.systems import SYSTEMS, ConfigError
from sketchdnn.training.config import RunError, parse_train_config


def test_setting_changes_nothing_else() -> None:
    assert [variant.system for variant in parse_systems(PAPER_SYSTEMS)] == list(SYSTEMS)
    ours = {"predict": "noise", "mse_weighting": "all", "superposition": "max", "reverse_logits": "2log"}
    settings = {f"sketchdnn:{name}": value for name, value in ours.items()}
    for name, value in (settings | {"vitruvion:arcs": "sweep", "sketchgen:top_p": 0.5}).items():
        system, _, setting = name.partition(":")
        plain, changed = (variant.preset for variant in parse_systems([system, f"{name}={value}"], "tiny"))
        assert (changed.config, changed.training) == (replace(plain.config, **{setting: value}), plain.training)
    # Settings may be nested, of training, or a preset.
    (variant,) = parse_systems(["sketchdnn:network.depth=1+training.batch_size=7"], "tiny")
    assert variant.preset.config.network.depth == 1
    assert parse_train_config(variant.preset.training, steps=1).batch_size == 7
    (unknown,) = parse_systems(["sketchdnn:training.speed=3"], "tiny")
    with pytest.raises((ConfigError, RunError), match="'speed'"):
        parse_train_config(unknown.preset.training, steps=1)
    (paper,) = parse_systems(["sketchdnn:preset=paper"])
    assert paper.preset.config.variant == "paper"
    for system in ("sketchdnn", "sketchdnn-pos", "sketchdnn-cat"):
        plain, changed = parse_systems([system, f"{system}:network.self_conditioning=true"], "tiny")
        assert changed.preset.config.network == replace(plain.preset.config.network, self_conditioning=True)
        assert changed.label.endswith(", network.self_conditioning = true")
    # Names are canonical.
    names = ["sketchdnn:predict=noise+boost=everywhere", " sketchdnn:mse_weighting=all+predict=noise"]
    (variant,) = parse_systems(names, "tiny")
    assert variant.name == "sketchdnn:mse_weighting=all+predict=noise"
    assert not {"/", ":"} & set(variant.folder)


BAD_NAMES = {
    "sketchnet": "'sketchnet'", "sketchdnn:": "settings like predict=noise", " , ": "no system is named",
    "sketchdnn:predict": "settings like predict=noise", "sketchdnn:predict=all": "predict must be one of x0, noise",
    "sketchdnn:color=red": "'color'", "sketchdnn:predict=x0+predict=noise": "sets predict twice",
    "sketchdnn:boost=low+mse_weighting=all": "sets mse_weighting twice", "sketchdnn:preset=none": "'none'",
    "sketchdnn:variant.depth=1": "variant has no settings below it", "latent:preset=paper": "system sketchdnn",
    "sketchdnn:network.depth=many": "depth must be a whole number",
    "sketchdnn:training.minutes=3": "the same for all systems",
    "sketchdnn:preset=paper+network.self_conditioning=true": "'self_conditioning'",
}  # fmt: skip


def test_bad_names_are_refused() -> None:
    for name, words in BAD_NAMES.items():
        with pytest.raises(ConfigError, match=re.escape(words)) as refused:
            parse_systems(name.split(","))
        assert "\n" not in str(refused.value)


def tables(
    change: Callable[[float], float] = lambda value: value, width: float = 0.0, without: str = ""
) -> list[ResultTable]:
    """Tables of the paper's numbers, changed, with intervals of some width."""

    def row(name: str) -> Row:
        values = {key: change(value) for key, value in PAPER[name.partition(":")[0]].items()}
        return Row(name, name, {k: Cell(f"{v:g}", v, v - width / 2, v + width / 2) for k, v in values.items()})

    names = [name if name != "vitruvion" else "vitruvion:arcs=sweep" for name in PAPER if name != without]
    columns = {"table1": FIDELITY, "table2": LIKELIHOOD}
    return [ResultTable(name, name, columns[name], [row(system) for system in names], []) for name in columns]


def test_claims_hold_for_the_paper_and_fail_reversed() -> None:
    findings = check_claims(tables())
    assert len(findings) == len(CLAIMS) >= 7
    assert {finding.verdict for finding in findings} == {HOLDS}
    for finding in findings:
        paper, ours = (text.split("; ")[0] for text in (finding.paper, finding.ours))
        assert float(paper) == float(ours)
    assert {finding.verdict for finding in check_claims(tables(lambda value: -value))} == {FAILS}
    assert all(finding.verdict.startswith(FAILS) for finding in check_claims(tables(lambda value: 1.0)))
    assert all("intervals overlap" in finding.verdict for finding in check_claims(tables(width=1e3)))
    # Missing systems are named.
    for name in PAPER:
        concerned = [f for f in check_claims(tables(without=name)) if name in (f.claim.first, *f.claim.others)]
        assert concerned
        for finding in concerned:
            decided = finding.claim.first != name and len(finding.claim.others) > 1
            assert finding.verdict.startswith(HOLDS if decided else NOT_MEASURED)
            assert ("without" in finding.verdict) == decided
