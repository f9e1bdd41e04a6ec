"""The commands and the code of README and of the tutorials run, or their page says why not."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from support.documents import ROOT, RUN, SHOWN, Block, blocks
from test_public_api import PUBLIC

DOCS = ROOT / "docs"
PAGES = sorted([ROOT / "README.md", DOCS / "start.md", DOCS / "python.md", *(DOCS / "tutorials").glob("*.md")])
NAMES = [path.relative_to(ROOT).as_posix() for path in PAGES]
RUNNER = ROOT / "tests" / "support" / "documents.py"


@pytest.mark.parametrize("name", NAMES)
def test_every_block_is_run_or_says_why_not(name: str) -> None:
    for block in blocks((ROOT / name).read_text(encoding="utf-8")):
        assert block.language in (*RUN, *SHOWN), f"{name}:{block.line}: name the language of this block"
        assert block.not_run is None or len(block.not_run) > 10
        block.source(1)  # its replacements apply


def test_links_lead_to_files_also_without_the_site() -> None:
    """As GitHub resolves them: relative to the page. Pages that only the site has are not linked."""
    built = DOCS / "reference" / "api"
    broken = []
    for page in [*ROOT.glob("*.md"), *DOCS.rglob("*.md"), *(ROOT / "integrations").rglob("*.md")]:
        text = re.sub(r"^```.*?^```|`[^`\n]*`", "", page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
        for target in re.findall(r"\]\(([^)\s#]+)", text):
            path = (page.parent / target).resolve()
            hidden = built in path.parents and path.name != "index.md"
            if page.parent != built and "://" not in target and (hidden or not path.exists()):
                broken.append(f"{page.relative_to(ROOT)}: {target}")
    assert broken == []


def test_every_public_package_has_a_page_of_its_docstrings() -> None:
    source = (DOCS / "site" / "pages.py").read_text(encoding="utf-8")
    assert set(PUBLIC) <= set(re.findall(r'^    "(sketchdnn[\w.]*)",$', source, re.MULTILINE))


def test_blocks_of_a_page() -> None:
    page = """# Title
<!-- first: echo a > a -->
```sh
cat a
```
<!-- run with: 10 -> 2 -->
<!-- run with: b -> c -->
   ```python
   x = 10
     b
   ```
<!-- not run: needs a GPU -->

```sh
train
```
"""
    first, shell, python, skipped = blocks(page)
    assert (first.text, shell.text) == ("echo a > a", "cat a")
    assert python.source(1) == "x = 2\n  c"
    assert skipped.not_run == "needs a GPU"
    with pytest.raises(ValueError, match="line 3"):
        Block(3, "sh", "echo 1", ("run with: 2 -> 3",)).source(1)


@pytest.mark.parametrize(("text", "passes"), [("print(1)", True), ("1 / 0", False)])
def test_a_page_fails_with_its_code(tmp_path: Path, text: str, passes: bool) -> None:
    (tmp_path / "page.md").write_text(f"```python\n{text}\n```\n```sh\ntrue\n```\n")
    assert (run_page(tmp_path / "page.md", tmp_path).returncode == 0) == passes


@pytest.mark.documents
@pytest.mark.parametrize("name", [name for name in NAMES if not name.endswith("index.md")])
def test_a_page_runs(name: str, tmp_path: Path) -> None:
    result = run_page(ROOT / name, tmp_path)
    assert result.returncode == 0, result.stdout[-3000:] + result.stderr[-3000:]


def run_page(page: Path, folder: Path) -> subprocess.CompletedProcess[str]:
    """Run a page in a folder, in a process of its own."""
    command = [sys.executable, str(RUNNER), str(page)]
    path = os.pathsep.join([str(ROOT / "src"), *filter(None, [os.environ.get("PYTHONPATH")])])
    environment = {**os.environ, "PYTHONPATH": path}
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)


NOTEBOOKS = sorted((ROOT / "examples").glob("*.ipynb"))


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebooks_hold_no_outputs(path: Path) -> None:
    for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]:
        assert not cell.get("outputs"), "clear the outputs before the commit"
        assert cell.get("execution_count") is None


@pytest.mark.documents
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_runs(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import nbformat
    from nbclient import NotebookClient

    monkeypatch.setenv("PYTHONPATH", str(ROOT / "src"))
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path / "ipython"))
    notebook = nbformat.read(path, as_version=4)
    NotebookClient(notebook, timeout=600, resources={"metadata": {"path": str(tmp_path)}}).execute()
    shown = [output for cell in notebook.cells for output in cell.get("outputs", ())]
    assert any("image/svg+xml" in output.get("data", {}) for output in shown), "a notebook shows sketches"
