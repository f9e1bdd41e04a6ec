"""The add-on in FreeCAD's window, on a virtual display: each command on a real sketch, with the real server."""

import socket
import sys

import pytest
from support.freecad_addon import ROOT, drive_window, is_alive

pytestmark = pytest.mark.desktop


def job(folder):
    """A command that starts the server of this tree, and a free port."""
    command = folder / "sketchdnn"
    command.write_text(
        f'#!/bin/sh\nOMP_NUM_THREADS=2 PYTHONPATH="{ROOT / "src"}" exec "{sys.executable}" -m sketchdnn "$@"\n'
    )
    command.chmod(0o755)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return {"command": str(command), "port": free.getsockname()[1]}


@pytest.fixture(scope="module")
def found(freecad_window, real_data, tmp_path_factory):
    folder = tmp_path_factory.mktemp("window")
    sketches = {"removed": [8, 9], "opened": [9], "drawing": "736f26_colors.dxf"}
    settings = {"data": str(real_data), "steps": 10}
    return {one["name"]: one for one in drive_window(folder, job(folder) | settings | sketches)}


def test_the_toolbar_has_the_five_commands(found):
    one = found["workbench"]
    assert len(one["buttons"]) == 5
    assert all(one["icons"])


def test_complete_keeps_what_is_given_and_adds_what_is_shown(found):
    one = found["complete"]
    before, after = one["before"], one["after"]
    assert 1 <= len(one["captions"]) <= 8
    assert one["accepted"] is True
    assert one["moved"] < 1e-6
    assert len(after["geometry"]) > len(before["geometry"])
    assert after["constraints"][: len(before["constraints"])] == before["constraints"]
    assert after["external"] == before["external"]
    assert after["placement"] == before["placement"]
    assert one["solve"] == 0


def test_a_completed_sketch_can_be_padded(found):
    valid, volume = found["complete"]["pad"]
    assert valid
    assert volume > 0


def test_one_undo_takes_a_completion_back(found):
    assert found["complete"]["undo_names"] == ["Complete sketch"]
    assert found["complete"]["undone"] is True


def test_the_window_stays_responsive_while_the_server_starts_and_works(found):
    for name in ("complete", "killed"):
        assert found[name]["ticks"] > 50
        assert found[name]["longest"] < 2.0


def test_names_and_expressions_survive(found):
    one = found["expressions"]
    before, after = one["before"], one["after"]
    assert before["expressions"]
    assert after["expressions"] == before["expressions"]
    assert after["constraints"][: len(before["constraints"])] == before["constraints"]
    assert "Midpoint" in [c[1] for c in after["constraints"]]
    assert one["solve"] == 0


def test_something_else_repeats_nothing_and_more_like_this_varies(found):
    one = found["expressions"]
    assert one["first"] >= 1
    assert one["others"] >= 1
    if one["repeated"]:  # in ten steps the model found nothing else: a sentence says so, and the tiles stay
        assert one["repeated"] == one["others"] == one["first"]
        assert "model added nothing that can stay" in one["message"]
    assert one["more"] >= 1


def test_auto_constrain_offers_several_results_with_counts(found):
    one = found["constrain"]
    assert one["active"] is True
    assert len(one["captions"]) >= 2
    assert all("constraints:" in caption for caption in one["captions"])
    assert one["accepted"] is True
    assert one["solve"] == 0
    assert one["full"] is True


def test_commands_are_disabled_while_the_mouse_drags(found):
    assert found["constrain"]["dragging"] is False


def test_kinds_of_constraints_can_be_left_out(found):
    one = found["constrain"]
    assert not {"equal", "symmetric", "length", "distance", "radius", "diameter", "angle"} & set(one["types"])
    assert "coincident" in one["types"]
    assert "without some kinds" in one["without_kinds"].replace("\n", " ")


def test_a_sketch_in_edit_mode_is_edited_again_afterwards(found):
    assert found["constrain"]["in_edit"] == "Sketch005"
    assert found["constrain"]["undone"] is True


def test_repair_says_where_the_wire_is_open(found):
    one = found["repair"]
    assert len(one["rows"]) == len(one["ends"]) == 2
    assert all("mm" in row for row in one["rows"])
    assert one["selected"][0][0] == "Sketch004"
    assert one["selected"][0][1][0].startswith("Vertex")
    assert one["marked"]
    assert one["cleared"]


def test_repair_closes_the_wire_and_can_be_undone(found):
    one = found["repair"]
    assert one["accepted"] is True
    assert one["solve"] == 0
    assert one["pad"][0]
    assert one["pad"][1] > 0
    assert one["undone"] is True
    assert one["after"]["external"] == one["before"]["external"]


def test_generate_puts_a_sketch_into_the_active_body(found):
    one = found["generate"]
    assert one["count"] == 8
    assert one["attached"][0] == "FlatFace"
    assert one["in_body"]
    assert one["size"] == pytest.approx(101.6, rel=0.02)
    assert one["solve"] == 0
    assert one["pad"][0]
    assert one["pad"][1] > 0
    assert one["undo_names"] == ["Generate sketch"]


def test_a_new_sketch_is_attached_to_the_selected_face(found):
    assert found["generate"]["above"] == ["Pad", True, pytest.approx(5)]


def test_import_makes_a_constrained_sketch(found):
    one = found["import"]
    assert one["accepted"] is True
    assert one["solve"] == 0
    assert one["constraints"] >= one["geometry"] > 3
    assert found["import undone"]["objects"] == 0


def test_cancel_ends_a_request_at_once(found):
    assert found["cancel"]["message"] == "Canceled."
    assert found["cancel"]["seconds"] < 3
    assert found["cancel"]["tiles"] == 0


def test_a_killed_server_is_reported_and_started_anew(found):
    one = found["killed"]
    assert one["message"] == "The SketchDNN server has stopped before it answered: try again, which starts it anew."
    assert one["again"] >= 1
    assert one["first"] != one["second"]


def test_a_running_server_is_shared_and_not_stopped_by_others(found):
    assert found["killed"]["shared"] is None
    assert found["exit"]["pid"] == found["killed"]["second"]


def test_the_server_ends_with_freecad(found):
    assert found["exit"]["stopped"] is True
    assert not is_alive(found["exit"]["pid"])


def test_without_a_server_a_sentence_says_what_to_do(found):
    messages = found["missing"]
    assert messages["none"].startswith("No SketchDNN server answers on port")
    assert "pip install sketchdnn[studio]" in messages["no command"]
    assert messages["ends at once"].startswith("The SketchDNN server ends as it starts")
    assert messages["taken"].startswith("Another program answers on port")
    assert "needs a token" in messages["token"]


def test_the_server_ends_when_the_window_is_closed(freecad_window, tmp_path):
    found = drive_window(tmp_path, job(tmp_path), script="quit_script.py")
    assert found[0]["pid"]
    assert found[0]["tiles"] >= 1
    assert not is_alive(found[0]["pid"])


def test_lengths_have_a_decimal_comma_and_inches(found):
    one = found["units"]
    assert one["shown"] == ["1234,50 mm", "25,40 mm"]
    assert one["typed"] == pytest.approx(25.4)
    assert one["inches"][0].startswith("1.00 in")
    assert one["inches"][1] == pytest.approx(38.1)


def test_the_preferences_page_keeps_what_is_set(found):
    one = found["preferences"]
    assert (one["command"], one["port"]) == ("/opt/sketchdnn/bin/python", 4321)
    assert one["toolbars"] == [True, False]
