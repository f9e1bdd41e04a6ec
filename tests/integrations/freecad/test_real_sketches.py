"""Every operation of the add-on on every real sketch that FreeCAD can solve; `-s` prints the counts."""

import json
import os
import socket
import subprocess
import sys

import pytest
from support.freecad_addon import ADDON, ROOT, SCRIPTS
from support.freecad_window import run_freecad

pytestmark = pytest.mark.slow
STEPS = 10
# FreeCAD 0.20 ends with a segmentation fault as it opens these, which later versions have written.
CRASHING = ("592688_new_wall_maze_v9", "75aa00_new_wall_maze_cog_v6", "7b382d_new_wall_maze_v4")


@pytest.fixture(scope="module")
def port():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        number = free.getsockname()[1]
    command = [sys.executable, "-m", "sketchdnn", "serve", "--port", str(number)]
    environment = os.environ | {"PYTHONPATH": str(ROOT / "src"), "OMP_NUM_THREADS": "2"}
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        assert server.stdout.readline().startswith("sketchdnn: serving at")
        yield number
        server.terminate()


@pytest.fixture(scope="module")
def found(freecadcmd, real_data, port, tmp_path_factory):
    found = []
    script = (SCRIPTS / "real_sketches_script.py").read_text()
    for path in sorted((real_data / "freecad").glob("*.FCStd")):
        if path.stem in CRASHING:
            continue
        folder = tmp_path_factory.mktemp("freecad")
        findings = folder / "findings.jsonl"
        job = {"document": str(path), "findings": str(findings), "addon": str(ADDON), "port": port, "steps": STEPS}
        output = run_freecad(freecadcmd, folder, script, job, timeout=900)
        lines = [json.loads(line) for line in findings.read_text().splitlines()]
        assert lines[-1]["operation"] == "end", output
        found += lines
    assert not [one for one in found if one["operation"] == "failed"]
    return found


def of(found, operation):
    return [one for one in found if one["operation"] == operation]


def test_completions_keep_everything_and_solve(found):
    all_ = of(found, "complete")
    done = [one for one in all_ if one.get("results")]
    print(  # noqa: T201
        f"\ncomplete: {len(all_)} sketches, {len(done)} with a suggestion, {sum(o['solve'] == 0 for o in done)} solve, "
        f"{sum(o['moved'] < 1e-6 for o in done)} unmoved, constraints added {sum(o['added'] for o in done)}, "
        f"left out {sum(o['refused'] for o in done)}"
    )
    assert len(done) >= 0.9 * len(all_)
    for one in done:
        assert one["kept"] == [True, True, True], one
        assert one["moved"] < 1e-6, one
        assert one["solve"] == 0, one


def test_constraining_solves(found):
    all_ = of(found, "constrain")
    full = [one for one in all_ if one.get("full")]
    print(  # noqa: T201
        f"\nconstrain: {len(all_)} sketches, {len(full)} with a full set, {sum(o['solve'] == 0 for o in full)} solve, "
        f"{sum(o['fully'] for o in full)} fully constrained in FreeCAD, constraints added "
        f"{sum(o['added'] for o in full)}, left out {sum(sum(o['refused'].values()) for o in full)}"
    )
    assert len(full) >= 0.9 * len(all_)
    assert all(one["solve"] == 0 for one in full)
    seen = [one for one in full if set(one["unseen"]) <= {"ExternalGeometry"}]
    assert sum(one["fully"] for one in seen) >= 0.9 * len(seen)


def test_repairs_solve_and_keep_names(found):
    all_ = [one for one in of(found, "repair") if "error" not in one]
    print(  # noqa: T201
        f"\nrepair: {len(all_)} sketches, {sum(o['ends'][0] > 0 for o in all_)} open before, "
        f"{sum(o['ends'][1] > 0 for o in all_)} after, {sum(o['solve'] == 0 for o in all_)} solve"
    )
    for one in all_:
        assert one["solve"] == 0, one
        assert one["names"], one


def test_no_request_fails(found):
    assert [one for one in found if "error" in one] == []
