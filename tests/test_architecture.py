"""The structure of the package: layers, start-up imports, module names and sizes."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import sketchdnn

SOURCE = Path(sketchdnn.__file__).parent
REPOSITORY = SOURCE.parent.parent
TESTS = Path(__file__).parent
# Libraries that are slow to import: commands without need of them must not do so.
SLOW = {
    "torch",
    "ezdxf",
    "matplotlib",
    "scipy",
    "h5py",
    "lz4",
    "pyarrow",
    "PIL",
    "pandas",
    "huggingface_hub",
    "jinja2",
    "cv2",
}
VAGUE_NAMES = {"utils", "util", "common", "helpers", "misc", "shared", "base", "config_global"}

MODULES = {path: path.read_text() for path in sorted(SOURCE.rglob("*.py"))}
TREES = {path: ast.parse(text) for path, text in MODULES.items()}


@pytest.mark.parametrize(
    "statement",
    [
        "import sketchdnn.geometry, sketchdnn.formats, sketchdnn.render, sketchdnn.cli.app",
        "from sketchdnn.cli.app import app; app(['convert', '--help'], standalone_mode=False)",
    ],
)
def test_start_up_imports_no_heavy_library(statement: str) -> None:
    program = f"{statement}\nimport sys\nprint('|' + ' '.join(sorted({{m.split('.')[0] for m in sys.modules}})))"
    result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert set(result.stdout.rpartition("|")[2].split()) & (SLOW | {"sketchdnn"}) == {"sketchdnn"}


def test_imports_point_downwards_and_the_package_imports_nothing_else() -> None:
    program = "import sys; before = set(sys.modules); import sketchdnn; print(*set(sys.modules) - before)"
    result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert [name for name in result.stdout.split() if name.startswith(("sketchdnn", "numpy"))] == ["sketchdnn"]
    if not (REPOSITORY / "pyproject.toml").is_file():
        pytest.skip("installed without its repository")
    program = Path(sys.executable).with_name("lint-imports")
    result = subprocess.run([program, "--no-cache"], cwd=REPOSITORY, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stdout + result.stderr


def test_modules_have_clear_names_docstrings_and_at_most_500_lines() -> None:
    names = {path.stem for path in MODULES} | {path.parent.name for path in MODULES}
    assert not names & VAGUE_NAMES
    assert not [path for path, tree in TREES.items() if tree.body and not ast.get_docstring(tree)]
    assert not [path for path, text in MODULES.items() if len(text.splitlines()) > 500]


def test_modules_have_no_side_effects_and_unpickle_nothing() -> None:
    forbidden = {"chdir", "seed", "manual_seed", "basicConfig", "set_default_dtype", "set_default_device"}
    for path, tree in TREES.items():
        for node in tree.body:
            if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
                call = node.value.func
                name = call.attr if isinstance(call, ast.Attribute) else getattr(call, "id", "")
                assert name not in forbidden, f"{path} calls {name} when it is imported"
        for node in ast.walk(tree):
            if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
                called = f"{node.value.id}.{node.attr}"
                assert called not in {"os.chdir", "pickle.load", "pickle.loads", "os.system"}, f"{path}: {called}"


def test_every_package_has_tests_and_data_folders_are_ignored_at_the_top() -> None:
    packages = {path.name for path in SOURCE.iterdir() if (path / "__init__.py").is_file()}
    tested = {path.name for path in TESTS.iterdir() if path.is_dir() and list(path.glob("test_*.py"))}
    assert packages <= tested, f"no tests for {sorted(packages - tested)}"
    ignore = REPOSITORY / ".gitignore"
    if not ignore.is_file():
        pytest.skip("installed without its repository")
    assert not {"data", "data/"} & set(ignore.read_text().split())
