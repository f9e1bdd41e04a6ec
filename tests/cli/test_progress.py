"""Progress: a bar on a terminal, a line a minute elsewhere, nothing for short work."""

from __future__ import annotations

import io

from rich.console import Console

from sketchdnn.cli.progress import progress


class Clock:
    """A clock that tests set."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


def lines(console: Console) -> list[str]:
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue().splitlines()


def test_lines_are_printed_once_a_minute_without_a_terminal() -> None:
    console, clock = Console(file=io.StringIO(), width=30), Clock()
    with progress(console, "drawing", total=1000, clock=clock) as bar:
        for second in range(600):
            clock.now = 1000.0 + second
            bar.update(second)
    printed = lines(console)
    assert len(printed) == 9  # after 60 s, 120 s, …, 540 s, each on one line, however narrow
    assert printed[0] == "drawing: 60 of 1,000, 6 %, 1 min so far, about 16 min left"
    assert printed[-1] == "drawing: 540 of 1,000, 54 %, 9 min so far, about 8 min left"


def test_short_work_prints_notes_only() -> None:
    console, clock = Console(file=io.StringIO()), Clock()
    with progress(console, "training", total=1.0, clock=clock) as bar:
        clock.now += 59
        bar.update(0.5)
        assert lines(console) == []
        bar.note("validation at step 10: loss 0.5000")
    assert lines(console) == ["validation at step 10: loss 0.5000"]


def test_time_left_is_measured_from_the_start_of_a_stage() -> None:
    console, clock = Console(file=io.StringIO()), Clock()
    with progress(console, "training", total=1.0, clock=clock) as bar:
        bar.update(0.5)
        clock.now += 60
        bar.update(0.6)
        bar.update(0.0, total=10, doing="writing")
        clock.now += 120
        bar.update(2)
    assert lines(console) == [
        "training: 60 %, 1 min so far, about 4 min left",
        "writing: 2 of 10, 20 %, 3 min so far, about 8 min left",
    ]


def test_work_of_unknown_total_is_counted() -> None:
    console, clock = Console(file=io.StringIO()), Clock()
    with progress(console, "sketches read", clock=clock) as bar:
        for _ in range(1200):
            bar.advance()
        clock.now += 60
        bar.advance()
    assert lines(console) == ["sketches read: 1,201, 1 min so far"]


def test_terminal_shows_a_bar() -> None:
    console = Console(file=io.StringIO(), force_terminal=True, width=100)
    with progress(console, "drawing", total=4) as bar:
        bar.update(1)
    shown = "\n".join(lines(console))
    assert "drawing" in shown
    assert "1 of 4, 25 %" in shown
    assert "so far" not in shown
