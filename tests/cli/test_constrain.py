"""`sketchdnn constrain`: constraints that hold exactly, what was done in words, and one sentence for bad input."""

import math
from dataclasses import replace
from pathlib import Path

import pytest
from support.commands import program, refused, run
from support.freecad_judge import ask_freecad
from support.noisy_sketches import PLATE, add_noise

from sketchdnn.constraints import solve
from sketchdnn.formats import read, write
from sketchdnn.geometry import Circle, Constraint, ConstraintType, Line, Ref, Sketch, bounds, profile

T = ConstraintType
ROUGH = add_noise(PLATE, 0.1)


def constrained(*arguments: object) -> str:
    result = run("constrain", *arguments)
    assert result.stdout == ""
    return " ".join(result.stderr.split())


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    write(ROUGH, tmp_path / "rough.json")
    return tmp_path


@pytest.mark.parametrize("how", ["--repair", "--no-repair"])
def test_constraints_hold_and_conflicts_are_left_out(folder: Path, how: str) -> None:
    output = constrained("rough.json", "--out", "part.json", how)
    (part,) = read(folder / "part.json")
    found = {str(c.type) for c in part.constraints}
    assert {"coincident", "horizontal", "vertical", "tangent", "equal", "concentric"} <= found
    assert solve(part).residual < 1e-9
    assert solve(part).displacement < 1e-9
    # Lines of the outline meet exactly, and are as long as was meant.
    assert math.dist(part.primitives[0].end, part.primitives[1].start) < 1e-9  # type: ignore[union-attr]
    assert part.primitives[0].length == pytest.approx(60, abs=0.3)
    assert f"coincident 0 {sum(c.type is T.COINCIDENT for c in part.constraints)}" in output
    assert all(each in output for each in (f"degrees of freedom {solve(part).dof}", "moved by at most 0."))
    assert ("repaired Joined ends" in output) == (how == "--repair")
    given = (Constraint(T.HORIZONTAL, (Ref(0),)), Constraint(T.VERTICAL, (Ref(0),)))
    write(replace(ROUGH, constraints=given), folder / "some.json")
    output = constrained("some.json", "--out", "part.json", how)
    (part,) = read(folder / "part.json")
    assert "left out vertical: line 0" in output
    assert given[0] in part.constraints
    assert given[1] not in part.constraints
    assert solve(part).residual < 1e-9


def test_given_constraints_are_kept_and_named(folder: Path) -> None:
    given = (
        Constraint(T.TANGENT, (Ref(1), Ref(2))),
        Constraint(T.PARALLEL, (Ref(0), Ref(3))),
        Constraint(T.OTHER, (Ref(8),), name="Projected"),
    )
    write(replace(ROUGH, constraints=given), folder / "some.json")
    output = constrained("some.json", "--out", "part.json", "--no-repair")
    (part,) = read(folder / "part.json")
    assert part.constraints[: len(given)] == given
    assert all(each in output for each in ("parallel 1 1", "not checked Projected: circle 8"))
    hostile = Constraint(T.OTHER, (Ref(0),), name="\x1b]0;owned\x07 [red]\n" + "x" * 10_000)
    write(replace(ROUGH, constraints=(hostile,)), folder / "some.json")
    output = constrained("some.json", "--out", "part.json", "--no-repair")
    assert "not checked ]0;owned [red] x" in output
    assert "\x1b" not in output
    assert len(output) < 3000
    level = (Constraint(T.HORIZONTAL, (Ref(i),)) for i in (0, 3))
    given = (*level, Constraint(T.PARALLEL, (Ref(0), Ref(3))))
    write(replace(ROUGH, constraints=given), folder / "some.json")
    assert "redundant parallel: line 0, line 3" in constrained("some.json", "--out", "part.json", "--no-repair")


def test_outlines_and_the_origin(folder: Path) -> None:
    sides = [Line((0, 0), (40, 0)), Line((40, 0), (40, 30)), Line((40, 30), (0, 30)), Line((0, 30), (0, 0))]
    beside = Sketch((*sides, Line((60, 0), (70, 7))), units="mm")
    for name, sketch in {"open": Sketch(tuple(sides[:3]), units="mm"), "stray": beside}.items():
        write(sketch, folder / f"{name}.json")
        output = constrained(f"{name}.json", "--out", "part.json")
        assert "moved nothing" in output
        assert read(folder / "part.json").sketches[0].primitives == sketch.primitives
    constrained("open.json", "--out", "part.json", "--close")
    assert profile(read(folder / "part.json").sketches[0]).is_extrudable
    constrained("stray.json", "--out", "part.json", "--close")
    assert [p.construction for p in read(folder / "part.json").sketches[0]] == [False] * 4 + [True]
    corner = Sketch((Line((0.1, 0), (50, 0)), Line((0, 0.1), (0, 30))), units="mm")
    for name in ("corner.json", "corner.FCStd", "corner.dxf"):
        write(corner, folder / name)

    def tied(name: str, *how: str) -> bool:
        constrained(name, "--out", "part.json", *how)
        return any(ref.primitive is None for c in read(folder / "part.json").sketches[0].constraints for ref in c.refs)

    assert [tied(f"corner.{suffix}") for suffix in ("json", "FCStd", "dxf")] == [True, True, False]
    assert (tied("corner.dxf", "--origin"), tied("corner.json", "--no-origin")) == (True, False)


def test_tolerance_is_a_share_or_a_length_and_bounds_moves(folder: Path) -> None:
    apart = Sketch((Line((0, 0), (100, 0)), Line((100, 0.8), (100, 50))), units="mm")
    write(apart, folder / "apart.json")
    write(apart.in_units("in"), folder / "inches.json")

    def joined(name: str, *how: str) -> bool:
        constrained(name, "--out", "part.json", "--no-origin", *how)
        (part,) = read(folder / "part.json")
        return any(c.type is T.COINCIDENT for c in part.constraints)

    for name in ("apart.json", "inches.json"):
        assert all(joined(name, "--tolerance", wide) for wide in ("1mm", "1%", "0.04in"))
        assert not any(joined(name, "--tolerance", narrow) for narrow in ("0.1mm", "0.1%"))
    constrained("rough.json", "--out", "part.json", "--tolerance", "0.3%")
    (part,) = read(folder / "part.json")
    for p, q in zip(ROUGH.primitives[:2], part.primitives[:2], strict=True):
        assert math.dist(p.start, q.start) <= 0.003 * bounds(ROUGH).size  # type: ignore[union-attr]
    write([ROUGH, Sketch((Circle((0, 0), 0.1),), units="mm")], folder / "two.jsonl")
    output = constrained("two.jsonl", "--out", "done.jsonl", "--tolerance", "0.2mm")
    assert "warning 1 × a tolerance of" in output
    first, second = read(folder / "done.jsonl")
    assert first.constraints
    assert second.primitives == (Circle((0, 0), 0.1),)


@pytest.mark.parametrize("workers", [1, 2])
def test_many_sketches_keep_their_order(folder: Path, workers: int) -> None:
    sketches = [
        replace(add_noise(Sketch(PLATE.primitives[:6]), 0.1, k), extra={"id": f"part-{k:03d}"}) for k in range(90)
    ]
    write(sketches, folder / "many.jsonl")
    output = constrained("many.jsonl", "--out", "done.jsonl", "--workers", workers, "--no-repair")
    done = read(folder / "done.jsonl").sketches
    assert [sketch.extra["id"] for sketch in done] == [sketch.extra["id"] for sketch in sketches]
    for before, after in zip(sketches, done, strict=True):
        assert after.constraints
        assert math.dist(before.primitives[0].start, after.primitives[0].start) < 1  # type: ignore[union-attr]
    assert all(each in output for each in ("90 sketches", "in the median sketch"))


def test_folders_other_formats_and_degenerate_sketches(folder: Path) -> None:
    write([ROUGH, replace(ROUGH, extra={"id": "second"})], folder / "two.jsonl")
    constrained("two.jsonl", "--out", "parts/", "--format", "freecad")
    assert {path.name for path in (folder / "parts").iterdir()} == {"plate.FCStd", "second.FCStd"}
    assert "--format" in refused("constrain", "two.jsonl", "--out", "one.svg")
    assert "a constraint, which dxf cannot hold" in constrained("rough.json", "--out", "part.dxf")
    twice = Circle((0, 0), 2)
    for k, sketch in enumerate([Sketch(()), Sketch((twice, twice)), Sketch((Line((0, 0), (1e-9, 0)), twice))]):
        write(sketch, folder / f"{k}.json")
        constrained(f"{k}.json", "--out", "part.json")
        constrained(f"{k}.json", "--out", "part.json", "--no-repair")
    constrained("1.json", "--out", "part.json")
    assert len(read(folder / "part.json").sketches[0]) == 1
    constrained("rough.json", "--out", "few.json", "--no-repair")
    constrained("rough.json", "--out", "all.json", "--no-repair", "--all-inferred")
    few, every = (read(folder / name).sketches[0].constraints for name in ("few.json", "all.json"))
    assert set(few) <= set(every)


def test_bad_input_is_one_sentence(folder: Path) -> None:
    (folder / "broken.json").write_text("{")
    before = sorted(folder.iterdir())
    for words, reason in (
        ("missing.json --out part.json", "missing.json: cannot be read"),
        ("broken.json --out part.json", "broken.json"),
        ("rough.json --out part.xyz", "part.xyz: cannot be written"),
        ("rough.json --out part.json --units furlong", "'furlong' is not a known unit"),
        ("rough.json --out part.json --tolerance 5", "such as 0.5%"),
        ("rough.json --out part.json --tolerance 20%", "up to 3%"),
        ("rough.json --out part.json --tolerance x%", "not 'x%'"),
        ("rough.json --out part.json --tolerance -1mm", "--tolerance is a length"),
        ("rough.json --out part.json --tolerance 3parsec", "--tolerance is a length"),
        ("rough.json --out part.json --all-inferred", "--no-repair"),
        ("rough.json --out part.json --close --no-repair", "--close is part of a repair"),
    ):
        assert reason in refused("constrain", *words.split())
        assert sorted(folder.iterdir()) == before


def test_dimensions_fully_constrain_and_hold(folder: Path) -> None:
    output = constrained("rough.json", "--out", "part.json", "--dimensions")
    assert "degrees of freedom 0 fully constrained" in output
    (part,) = read(folder / "part.json")
    lengths = [c for c in part.constraints if c.type is T.LENGTH]
    assert lengths
    for c in lengths:
        assert part.primitives[c.refs[0].primitive or 0].length == pytest.approx(c.value)
    # Read again, nothing is found that would contradict them.
    again = constrained("part.json", "--out", "again.json")
    assert "left out" not in again
    assert "degrees of freedom 0" in again


def test_help_report_and_progress(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert "sketchdnn constrain drawing.dxf" in " ".join(run("constrain", "--help").stdout.split())
    done = program("constrain", "rough.json", "--out", "part.FCStd", cwd=folder)
    assert (done.returncode, done.stdout) == (0, "")
    assert done.stderr.startswith("part.FCStd: 1 sketch\n")
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TTY_COMPATIBLE", "1")
    assert "constraining" in run("constrain", "rough.json", "--out", "part.json").stderr


def test_freecad_solves_the_result(folder: Path, freecadcmd: str) -> None:
    drawn = [ROUGH, *(add_noise(PLATE, 0.05 * k, seed=k) for k in range(1, 4))]
    write([replace(s, extra={"id": f"part-{k}"}) for k, s in enumerate(drawn)], folder / "some.jsonl")
    constrained("some.jsonl", "--out", "repaired.FCStd")
    constrained("some.jsonl", "--out", "solved.FCStd", "--no-repair")
    constrained("some.jsonl", "--out", "settled.FCStd", "--dimensions")
    documents = [folder / f"{name}.FCStd" for name in ("repaired", "solved", "settled")]
    findings = ask_freecad(freecadcmd, folder, documents, [], solve=True)
    for path in documents:
        ours, theirs = read(path).sketches, findings["documents"][str(path)]
        assert len(theirs) == len(ours) == len(drawn)
        for sketch, found in zip(ours, theirs, strict=True):
            assert found["solve"] == 0
            assert sum(found["constraints"].values()) >= 0.8 * len(sketch.constraints) > 10
            for before, after in zip(found["numbers"], found["solved"], strict=True):
                assert after == pytest.approx(before, abs=1e-6)


def test_rounded_dimensions_are_named_and_exact(folder: Path, freecadcmd: str) -> None:
    output = constrained("rough.json", "--out", "part.FCStd", "--round", "auto", "--round-origin", "corner")
    assert "dimensions rounded to steps of 0.5, which moved things by at most 0." in output
    assert "degrees of freedom 0" in output
    document = folder / "part.FCStd"
    (part,) = read(document)
    named = {c.extra["label"]: c.value for c in part.constraints if "label" in c.extra}
    assert {"width": 60.0, "height": 40.0, "radius_1": 10.0}.items() <= named.items()
    findings = ask_freecad(freecadcmd, folder, [document], [], solve=True)
    (sketch,) = findings["documents"][str(document)]
    assert sketch["solve"] == 0
    assert sketch["solved"] == sketch["numbers"]
    whole = constrained("rough.json", "--out", "part.json", "--round", "2mm", "--units", "cm", "--no-origin")
    assert "rounded to steps of 0.2" in whole
    (part,) = read(folder / "part.json")
    assert all(round(c.value / 0.2) * 0.2 == pytest.approx(c.value) for c in part.constraints if "label" in c.extra)
    write([ROUGH, ROUGH.moved(2.0)], folder / "two.jsonl")
    assert "rounded 2 of 2 sketches in full" in constrained("two.jsonl", "--out", "many.jsonl", "--round", "auto")


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (["--round", "0"], "--round is auto or a step such as 0.5, 0.5mm or 1/16in, not '0'"),
        (["--round", "1/0in"], "--round is auto or a step such as 0.5, 0.5mm or 1/16in, not '1/0in'"),
        (["--round", "5 parsec"], "--round is auto or a step such as 0.5, 0.5mm or 1/16in, not '5 parsec'"),
        (["--round", "auto", "--round-origin", "left"], "--round-origin is auto, keep, corner, center, not 'left'"),
        (["--round-origin", "corner"], "--round-origin needs --round"),
    ],
)
def test_bad_steps_are_refused(folder: Path, options: list[str], sentence: str) -> None:
    assert refused("constrain", "rough.json", "--out", "part.json", *options) == f"sketchdnn: {sentence}"
