"""Progress: a bar on a terminal, a line a minute elsewhere, nothing for short work."""

import io
from collections.abc import Callable

from rich.console import Console

from sketchdnn.cli.progress import Progress, progress


def lines(console: Console) -> list[str]:
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue().splitlines()


def printed(total: float | None, *steps: tuple[float, Callable[[Progress], None]], width: int = 30) -> list[str]:
    """The lines of work whose steps are done so many seconds after its start."""
    console, now = Console(file=io.StringIO(), width=width), [0.0]
    with progress(console, "working", total=total, clock=lambda: now[0]) as bar:
        for now[0], step in steps:
            step(bar)
    return lines(console)


def test_lines_are_printed_once_a_minute_without_a_terminal() -> None:
    told = printed(1000, *((second, lambda bar, second=second: bar.update(second)) for second in range(600)))
    assert len(told) == 9  # after 60 s, 120 s, …, 540 s, each on one line, however narrow
    assert told[0] == "working: 60 of 1,000, 6 %, 1 min so far, about 16 min left"
    assert told[-1] == "working: 540 of 1,000, 54 %, 9 min so far, about 8 min left"


def test_short_work_prints_notes_only() -> None:
    words = "validation at step 10: loss 0.5000"
    assert printed(1.0, (59, lambda bar: bar.update(0.5)), (59, lambda bar: bar.note(words))) == [words]


def test_time_left_is_measured_from_the_start_of_a_stage() -> None:
    first = [(0, lambda bar: bar.update(0.5)), (60, lambda bar: bar.update(0.6))]
    told = printed(1.0, *first, (60, lambda bar: bar.update(0.0, 10, "writing")), (180, lambda bar: bar.update(2)))
    assert told[0] == "working: 60 %, 1 min so far, about 4 min left"
    assert told[1:] == ["writing: 2 of 10, 20 %, 3 min so far, about 8 min left"]


def test_work_of_unknown_total_is_counted() -> None:
    steps = [*[0] * 1200, 60]
    assert printed(None, *((at, lambda bar: bar.advance()) for at in steps)) == ["working: 1,201, 1 min so far"]


def test_terminal_shows_a_bar() -> None:
    console = Console(file=io.StringIO(), force_terminal=True, width=100)
    with progress(console, "drawing", total=4) as bar:
        bar.update(1)
    shown = "\n".join(lines(console))
    assert all(each in shown for each in ("drawing", "1 of 4, 25 %"))
    assert "so far" not in shown
