"""Change the source in one small way at a time, and see whether a test fails. How to use it: docs/testing.md.

A copy of the working tree is changed, never the tree itself. Which tests run a line is found once with `coverage` and
kept in `.mutants/tests.json`. Results are kept in `.mutants/results.jsonl`; a mutant that is there is not tried again.
Names, annotations, decorators, strings, what an error says, `strict=` and `indent=` are not changed.
"""

from __future__ import annotations

import argparse
import ast
import copy
import hashlib
import json
import multiprocessing
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import traceback
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parent.parent
KEPT = ROOT / ".mutants"
SOURCE = Path("src/sketchdnn")
PACKAGES = ("diffusion", "systems", "evaluation", "training")
# Tests run until one fails: those of the file's name first, then quick ones, while their seconds add up to this.
MOST_SECONDS = 90.0
# A mutant counts as killed if its tests take this many times longer than before, and so many seconds more.
TIMES_LONGER, SECONDS_LONGER = 5.0, 60.0
# Stands for every line of a file in the map of lines to tests.
ANYWHERE = "*"
_ALIVE = ("survived", "uncovered")
# Mutants that no behavior tells apart from the original: the file, a piece of `Mutant.key`, and the reason.
EQUIVALENT = (
    ("diffusion/noise.py", "(count + 3) // 4 -> (count + 3) * 4", "only computes numbers that are then cut off"),
    ("diffusion/samplers.py", "numerator = torch.where(usable, next_step, 0.0) | 0.0 -> 1.0", "the next line masks it"),
    ("evaluation/curves.py", "4 * compact.kind.shape[1] ** 2)) | 1 -> 2 #2", "only the number of sketches in a chunk"),
    ("evaluation/raster.py", "int(images.shape[-1]), stroke | 1 -> 2", "the images are square"),
    ("training/run.py", "dynamic=False) if compiles else objective | False", "only what torch.compile assumes"),
)

_SWAPPED: dict[type[ast.AST], tuple[type[ast.AST], ...]] = {
    ast.Add: (ast.Sub,),
    ast.Sub: (ast.Add,),
    ast.Mult: (ast.Div,),
    ast.Div: (ast.Mult,),
    ast.FloorDiv: (ast.Mult,),
    ast.Mod: (ast.Mult,),
    ast.Pow: (ast.Mult,),
    ast.BitAnd: (ast.BitOr,),
    ast.BitOr: (ast.BitAnd,),
    ast.LShift: (ast.RShift,),
    ast.RShift: (ast.LShift,),
    ast.Lt: (ast.LtE, ast.GtE),
    ast.LtE: (ast.Lt, ast.Gt),
    ast.Gt: (ast.GtE, ast.LtE),
    ast.GtE: (ast.Gt, ast.Lt),
    ast.Eq: (ast.NotEq,),
    ast.NotEq: (ast.Eq,),
    ast.Is: (ast.IsNot,),
    ast.IsNot: (ast.Is,),
    ast.In: (ast.NotIn,),
    ast.NotIn: (ast.In,),
    ast.And: (ast.Or,),
    ast.Or: (ast.And,),
}


@dataclass(frozen=True)
class Mutant:
    """One change: the `number`-th of its file. `was` and `now` are the smallest code around it."""

    file: str
    number: int
    line: int
    statement: int
    is_at_import: bool
    was: str
    now: str
    key: str


def mutants_of(file: str, source: str) -> list[Mutant]:
    """All mutants of a file, in the order of the code. A key stays the same when other lines change."""
    found, seen, lines = [], Counter[str](), source.splitlines()
    for number, change in enumerate(_changes(ast.parse(source))):
        was, now = _said(change.node), _said(change.new)
        key = f"{Path(file).relative_to(SOURCE)}: {lines[change.node.lineno - 1].strip()} | {was} -> {now}"
        seen[key] += 1
        key += f" #{seen[key]}" if seen[key] > 1 else ""
        found.append(Mutant(file, number, change.node.lineno, change.statement, change.is_at_import, was, now, key))
    return found


def mutated(source: str, number: int) -> str:
    """The file with one of its mutants in place."""
    tree = ast.parse(source)
    next(change for index, change in enumerate(_changes(tree)) if index == number).apply()
    return ast.unparse(ast.fix_missing_locations(tree)) + "\n"


@dataclass(frozen=True)
class _Place:
    """A node that may change, where it stands in its owner, and the line that its statement starts at."""

    owner: ast.AST
    field: str
    index: int | None
    node: Any
    statement: int
    is_at_import: bool


@dataclass(frozen=True)
class _Change:
    place: _Place
    new: ast.AST

    @property
    def node(self) -> Any:
        return self.place.node

    @property
    def statement(self) -> int:
        return self.place.statement

    @property
    def is_at_import(self) -> bool:
        return self.place.is_at_import

    def apply(self) -> None:
        """Make the change in the tree."""
        if self.place.index is None:
            setattr(self.place.owner, self.place.field, self.new)
        else:
            getattr(self.place.owner, self.place.field)[self.place.index] = self.new


def _changes(tree: ast.Module) -> Iterator[_Change]:
    for place in _places(tree, 0, is_at_import=True):
        for new in _replacements(place.node):
            if ast.unparse(new) != ast.unparse(place.node):
                yield _Change(place, new)


def _places(node: ast.AST, statement: int, *, is_at_import: bool) -> Iterator[_Place]:
    """Every expression and statement that may change. Default values of arguments are made at import."""
    for field, value in ast.iter_fields(node):
        if field in ("annotation", "returns", "decorator_list", "bases", "type_params"):
            continue
        at_import = is_at_import and not (isinstance(node, ast.FunctionDef | ast.Lambda) and field == "body")
        children = value if isinstance(value, list) else [value]
        for index, child in enumerate(children):
            if not isinstance(child, ast.AST) or _is_left_alone(node, child):
                continue
            line = child.lineno if isinstance(child, ast.stmt) else statement
            if isinstance(child, ast.expr | ast.stmt):
                yield _Place(node, field, index if isinstance(value, list) else None, child, line, at_import)
            # What an error says is words; only whether it is raised counts.
            if not isinstance(child, ast.Raise | ast.JoinedStr | ast.Assert):
                yield from _places(child, line, is_at_import=at_import)


def _is_left_alone(owner: ast.AST, child: ast.AST) -> bool:
    if isinstance(child, ast.Import | ast.ImportFrom):
        return True
    if isinstance(child, ast.Expr) and isinstance(child.value, ast.Constant):  # a docstring
        return True
    is_alias = isinstance(owner, ast.Module) and isinstance(child, ast.Assign) and _is_type(child.value)
    targets = child.targets if isinstance(child, ast.Assign) else [getattr(child, "target", None)]
    is_listing = isinstance(targets[0], ast.Name) and targets[0].id in ("__all__", "__slots__")
    # zip(strict=…) is an assertion, and json.dumps(indent=…) changes how a file looks, not what it says.
    is_no_matter = isinstance(child, ast.keyword) and child.arg in ("strict", "indent")
    is_typing = isinstance(child, ast.If) and ast.unparse(child.test) == "TYPE_CHECKING"
    return is_alias or is_listing or is_no_matter or is_typing


def _is_type(value: ast.AST) -> bool:
    """Whether this is the type of something: `int | str`, `Float[Tensor, "batch"]`."""
    if isinstance(value, ast.BinOp):
        return isinstance(value.op, ast.BitOr) and _is_type(value.left) and _is_type(value.right)
    if isinstance(value, ast.Subscript):
        return _is_type(value.value)
    return isinstance(value, ast.Name | ast.Attribute) or (isinstance(value, ast.Constant) and value.value is None)


def _replacements(node: ast.AST) -> Iterator[ast.AST]:
    if isinstance(node, ast.stmt):
        yield from _statements_for(node)
    elif isinstance(node, ast.Constant):
        if isinstance(node.value, int | float):
            yield ast.Constant(not node.value if isinstance(node.value, bool) else node.value + 1)
    else:
        yield from _expressions_for(node)


def _expressions_for(node: ast.AST) -> Iterator[ast.AST]:
    match node:
        case ast.BinOp() if not _is_text(node.left) and not _is_text(node.right):
            yield from (_with(node, op=op()) for op in _SWAPPED.get(type(node.op), ()))
        case ast.BoolOp():
            yield from (_with(node, op=op()) for op in _SWAPPED[type(node.op)])
        case ast.Compare():
            for i, op in enumerate(node.ops):
                yield from (_with(node, ops=[*node.ops[:i], o(), *node.ops[i + 1 :]]) for o in _SWAPPED[type(op)])
        # A negative number is a number: -1 becomes -2. As an axis, 1 is often the same as -1.
        case ast.UnaryOp(op=ast.Not() | ast.USub() | ast.Invert()) if not isinstance(node.operand, ast.Constant):
            yield node.operand
        case ast.IfExp():
            yield from _negated(node)
        case ast.Slice():
            yield from (_with(node, **{side: None}) for side in ("lower", "upper") if getattr(node, side) is not None)
        case ast.Call(func=ast.Name(id="min" | "max" as name)):
            yield _with(node, func=ast.Name({"min": "max", "max": "min"}[name]))


def _statements_for(node: ast.stmt) -> Iterator[ast.AST]:
    match node:
        case ast.If() | ast.While():
            yield from _negated(node)
        case ast.Return(value=value) if value is not None and ast.unparse(value) != "None":
            yield ast.Return(ast.Constant(None))
        case ast.AugAssign():
            yield from (_with(node, op=op()) for op in _SWAPPED.get(type(node.op), ()))
            yield ast.Pass()
        case ast.Assign(targets=[ast.Attribute() | ast.Subscript()]) | ast.Expr(value=ast.Call()):
            yield ast.Pass()
        case ast.Raise() | ast.Delete() | ast.Continue() | ast.Break():
            yield ast.Pass()


def _negated(node: ast.If | ast.While | ast.IfExp) -> Iterator[ast.AST]:
    """A comparison and a `not` have mutants of their own that say the same."""
    if not isinstance(node.test, ast.Compare | ast.UnaryOp):
        yield _with(node, test=ast.UnaryOp(ast.Not(), node.test))


def _with(node: ast.AST, **changed: object) -> ast.AST:
    new = copy.copy(node)
    for field, value in changed.items():
        setattr(new, field, value)
    return new


def _is_text(node: ast.AST) -> bool:
    return isinstance(node, ast.JoinedStr) or (isinstance(node, ast.Constant) and isinstance(node.value, str | bytes))


def _said(node: ast.AST) -> str:
    """The first line of the code, which for a statement with a body is what changes."""
    return ast.unparse(ast.fix_missing_locations(copy.copy(node))).splitlines()[0]


# --- Which tests run which line


class _Contexts:
    """A pytest plugin: what runs while a test is called belongs to it; how long each took, if it passed."""

    def __init__(self, measuring: Any) -> None:
        self.measuring, self.seconds = measuring, defaultdict[str, float](float)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_call(self, item: pytest.Item) -> Iterator[None]:
        self.measuring.switch_context(item.nodeid)
        try:
            return (yield)
        finally:
            self.measuring.switch_context("")

    def pytest_runtest_logreport(self, report: Any) -> None:
        if report.passed:
            self.seconds[report.nodeid] += report.duration
        else:
            self.seconds[report.nodeid] = float("inf")


def measure(work: Path, file: str) -> dict[str, Any]:
    """Run the tests of a file once: seconds of each test, and by source file and line the tests that run it.

    What fixtures run, or the test file itself when it is imported, may matter to every test of the file.
    """
    import coverage

    measuring = coverage.Coverage(data_file=None, source=[str(work / SOURCE / package) for package in PACKAGES])
    contexts = _Contexts(measuring)
    measuring.start()
    pytest.main([*_PYTEST, file], plugins=[contexts])
    measuring.stop()
    data = measuring.get_data()
    lines: dict[str, dict[str, list[str]]] = {}
    for source in data.measured_files():
        inside, found = _lines_of_functions(Path(source).read_text()), {}
        for line, tests in data.contexts_by_lineno(source).items():
            if line in inside:
                found[str(line)] = sorted(contexts.seconds if "" in tests else tests)
        lines[str(Path(source).relative_to(work))] = found
    return {"seconds": dict(contexts.seconds), "lines": lines}


def _lines_of_functions(source: str) -> set[int]:
    """Lines that run when a function is called, not when the file is imported."""
    functions = [node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.FunctionDef)]
    return {line for node in functions for line in range(node.body[0].lineno, (node.end_lineno or 0) + 1)}


def tests_of(mutant: Mutant, known: dict[str, Any]) -> list[str]:
    """Tests that run the line; for what runs at import alone, those that run anything of the file."""
    lines, seconds = known["lines"].get(mutant.file, {}), known["seconds"]
    found = {*(lines.get(str(mutant.line)) or lines.get(str(mutant.statement), [])), *lines.get(ANYWHERE, [])}
    if not found and mutant.is_at_import:
        found = {test for tests in lines.values() for test in tests}
    name = Path(mutant.file).stem

    def rank(test: str) -> tuple[bool, float]:
        return f"test_{name}.py" not in test, seconds[test]

    chosen, total = [], 0.0
    for test in sorted((test for test in found if seconds.get(test, float("inf")) < MOST_SECONDS), key=rank):
        if chosen and total + seconds[test] > MOST_SECONDS:
            break
        chosen.append(test)
        total += seconds[test]
    return chosen


# --- Running


_PYTEST = ("-q", "-p", "no:cacheprovider", "-p", "no:xdist", "--hypothesis-profile", "mutants", "--tb=line")


def copied(to: Path) -> None:
    """The files of the working tree that git knows or would know."""
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"],
        cwd=ROOT, capture_output=True, check=True, text=True,
    ).stdout.split("\0")  # fmt: skip
    for name in filter(None, listed):
        if (ROOT / name).is_file():
            (to / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, to / name)


def _log() -> Path:
    """The output of the last tests that this process ran."""
    return KEPT / f"last-{multiprocessing.current_process().name}.log"


def in_child(work: Path, call: Callable[[], int], seconds: float | None) -> int | None:
    """What a call returns in a child process that imports the package from the copy; None if it took too long."""
    child = os.fork()
    if child == 0:
        status = 70
        try:
            os.setsid()
            os.chdir(work)
            sys.path.insert(0, str(work / "src"))
            os.environ["PYTHONPATH"] = str(work / "src")
            quiet = os.open(_log(), os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
            os.dup2(quiet, 1)
            os.dup2(quiet, 2)
            status = call()
        except BaseException:  # noqa: BLE001  (it must not go on as a second parent)
            traceback.print_exc()
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(status)
    until = None if seconds is None else time.monotonic() + seconds
    while True:
        ended, status = os.waitpid(child, os.WNOHANG)
        if ended:
            return os.waitstatus_to_exitcode(status)
        if until is not None and time.monotonic() > until:
            os.killpg(child, signal.SIGKILL)
            os.waitpid(child, 0)
            return None
        time.sleep(0.02)


def try_mutant(work: Path, mutant: Mutant, tests: Sequence[str], seconds: float) -> str:
    """`killed`, `timeout`, `survived`, or `uncovered` where no test runs the line."""
    if not tests:
        return "uncovered"
    path = work / mutant.file
    source = (ROOT / mutant.file).read_text()
    path.write_text(mutated(source, mutant.number))
    try:
        status = in_child(work, lambda: _pytest_on("-x", *tests), TIMES_LONGER * seconds + SECONDS_LONGER)
    finally:
        path.write_text(source)
    # A failed test is 1. All else may be a module that cannot be imported any more, or tests that are no longer there.
    if status not in (None, 0, 1) and in_child(work, lambda: _pytest_on("--collect-only", *tests), None) != 0:
        raise SystemExit("the tests are not those that were measured: use --measure-again")
    return {None: "timeout", 0: "survived"}.get(status, "killed")


def _pytest_on(*arguments: str) -> int:
    return int(pytest.main([*_PYTEST, *arguments]))


def _warm_up() -> None:
    """Import once, before any fork, what takes long and is not changed."""
    sys.dont_write_bytecode = True  # a copy that is changed twice within a second must not be taken from a cache
    os.environ["PYTHONDONTWRITEBYTECODE"] = "1"
    for name in ("torch", "torch._dynamo", "scipy.stats", "matplotlib.figure", "ezdxf"):
        import_module(name)


def in_parallel(jobs: int, items: Sequence[Any], handle: Callable[[Path, Any], None]) -> None:
    """Call `handle(copy of the tree, item)` for every item, in `jobs` processes."""
    fork = multiprocessing.get_context("fork")
    queue = fork.Queue()
    for item in [*items, *[None] * jobs]:
        queue.put(item)

    def worker() -> None:
        with tempfile.TemporaryDirectory(prefix="mutants-") as folder:
            copied(Path(folder))
            while (item := queue.get()) is not None:
                handle(Path(folder), item)

    workers = [fork.Process(target=worker, name=str(number)) for number in range(jobs)]
    for process in workers:
        process.start()
    for process in workers:
        process.join()
    if any(process.exitcode for process in workers):
        raise SystemExit(f"a worker failed: see the messages above and the logs in {KEPT}")


def known_tests(jobs: int, files: Sequence[str], *, again: bool) -> dict[str, Any]:
    """The kept map of lines to tests. Test files that it lacks, or that have changed, are measured."""
    kept = KEPT / "tests.json"
    known: dict[str, Any] = {"files": {}, "sources": {}, "seconds": {}, "lines": {}}
    if kept.is_file() and not again:
        known = json.loads(kept.read_text())
    _forget_lines(known)
    changed = [file for file in files if known["files"].get(file) != _hash(file)]
    parts = {file: KEPT / f"part-{number}.json" for number, file in enumerate(changed)}
    in_parallel(jobs, changed, lambda work, file: _measure_into(parts[file], work, file))
    for file, part in parts.items():
        _add(known, file, json.loads(part.read_text()))
        known["files"][file] = _hash(file)
        part.unlink()
    known["sources"] = {source: _hash(source) for source in known["lines"]}
    temporary = KEPT / "tests.json.part"
    temporary.write_text(json.dumps(known))
    temporary.replace(kept)
    return known


def _hash(file: str) -> str:
    return hashlib.sha256((ROOT / file).read_bytes()).hexdigest()


def _forget_lines(known: dict[str, Any]) -> None:
    """Of a source file that has changed, only which tests run anything of it is still known."""
    for source, lines in known["lines"].items():
        if (ROOT / source).is_file() and known["sources"].get(source) != _hash(source):
            known["lines"][source] = {ANYWHERE: sorted({test for tests in lines.values() for test in tests})}


def _measure_into(part: Path, work: Path, file: str) -> None:
    print(f"measuring which lines {file} runs", flush=True)

    def once() -> int:
        part.write_text(json.dumps(measure(work, file)))
        return 0

    if in_child(work, once, None) != 0:
        raise SystemExit(f"the tests of {file} could not be measured: see {_log()}")


def _add(known: dict[str, Any], file: str, found: dict[str, Any]) -> None:
    """Put what a test file runs in the place of what it ran before."""
    known["seconds"] = {test: s for test, s in known["seconds"].items() if test.split("::")[0] != file}
    known["seconds"] |= found["seconds"]
    for source in {*known["lines"], *found["lines"]}:
        there, new = known["lines"].setdefault(source, {}), found["lines"].get(source, {})
        for line in {*there, *new}:
            others = [test for test in there.get(line, []) if test.split("::")[0] != file]
            there[line] = others + new.get(line, [])


def all_mutants(packages: Iterable[str]) -> list[Mutant]:
    """Those of every file of some packages, in order of the files."""
    return [
        mutant
        for package in packages
        for path in sorted((ROOT / SOURCE / package).rglob("*.py"))
        for mutant in mutants_of(str(path.relative_to(ROOT)), path.read_text())
    ]


def _chosen(args: argparse.Namespace) -> list[Mutant]:
    if args.at:
        wanted = {tuple(place.rsplit(":", 1)) for place in args.at}
        files = {file: (ROOT / SOURCE / file).read_text() for file, _ in wanted}
        every = [m for file, text in files.items() for m in mutants_of(str(SOURCE / file), text)]
        return [m for m in every if (str(Path(m.file).relative_to(SOURCE)), str(m.line)) in wanted]
    # By a hash, so that most of them stay the same when the source changes.
    every = sorted(all_mutants(args.packages), key=lambda m: hashlib.sha256(f"{args.seed} {m.key}".encode()).digest())
    return every[: args.count]


def main() -> None:
    """Try some mutants and say how many were killed."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--count", type=int, default=200, help="how many mutants to take, chosen by chance")
    parser.add_argument("--seed", type=int, default=0, help="which they are")
    parser.add_argument("--packages", nargs="+", default=PACKAGES, help="folders of src/sketchdnn")
    parser.add_argument("--at", nargs="+", metavar="FILE:LINE", help="all mutants of these lines instead")
    parser.add_argument("--tests", nargs="+", help="run these tests, not those that cover the line")
    parser.add_argument("--test-files", nargs="+", default=_test_files(), help="whose tests to run; default all")
    parser.add_argument("--survivors-again", action="store_true", help="try again those that survived before")
    parser.add_argument("--jobs", type=int, default=1, help="processes that run tests at the same time")
    parser.add_argument("--measure-again", action="store_true", help="find again which tests run which line")
    args = parser.parse_args()
    KEPT.mkdir(exist_ok=True)
    _warm_up()
    results = KEPT / "results.jsonl"
    before = _read_results(results)
    known = {} if args.tests else known_tests(args.jobs, args.test_files, again=args.measure_again)
    chosen = _chosen(args)
    pending = [m for m in chosen if _must_try(m, before, args)]

    def handle(work: Path, number: int) -> None:
        mutant = pending[number]
        tests = args.tests or tests_of(mutant, known)
        seconds = 60.0 if args.tests else sum(known["seconds"][test] for test in tests)
        result = try_mutant(work, mutant, tests, seconds)
        with results.open("a") as file:
            file.write(json.dumps({"key": mutant.key, "result": result}) + "\n")
        print(f"{result:10} {mutant.line:4} {mutant.key}", flush=True)

    in_parallel(args.jobs, range(len(pending)), handle)
    after = _read_results(results)
    count = Counter("equivalent" if _is_equivalent(mutant) else after[mutant.key] for mutant in chosen)
    for mutant in chosen:
        if not _is_equivalent(mutant) and after[mutant.key] in _ALIVE:
            print(f"alive: {after[mutant.key]:10} {mutant.line:4} {mutant.key}")
    dead, alive = count["killed"] + count["timeout"], sum(count[result] for result in _ALIVE)
    print(f"{dead} of {dead + alive} killed ({dead / max(1, dead + alive):.1%}); {dict(count)}")


def _must_try(mutant: Mutant, before: dict[str, str], args: argparse.Namespace) -> bool:
    if _is_equivalent(mutant):
        return False
    result = before.get(mutant.key)
    return bool(args.tests) or result is None or (args.survivors_again and result in _ALIVE)


def _is_equivalent(mutant: Mutant) -> bool:
    return any(mutant.key.startswith(file) and piece in mutant.key for file, piece, _ in EQUIVALENT)


def _read_results(path: Path) -> dict[str, str]:
    """The last result of every mutant that was tried."""
    lines = path.read_text().splitlines() if path.is_file() else []
    return {one["key"]: one["result"] for one in map(json.loads, lines)}


def _test_files() -> list[str]:
    tests = sorted((ROOT / "tests").rglob("test_*.py"))
    # Examples in docstrings are tests too.
    examples = [p for package in PACKAGES for p in (ROOT / SOURCE / package).rglob("*.py") if ">>>" in p.read_text()]
    return [str(path.relative_to(ROOT)) for path in [*sorted(examples), *tests]]


if __name__ == "__main__":
    main()
