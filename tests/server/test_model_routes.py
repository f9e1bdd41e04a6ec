"""Model calls: the results are the library's own, alone or in a batch with other requests."""

import threading
from collections.abc import Callable
from functools import partial
from typing import Any

import httpx
import pytest
from support.server import API, OPEN_PLATE, RunningServer, events_of, read_events
from support.threads import together

from sketchdnn.generation import CompleteRequest, GenerateRequest, SketchDNN
from sketchdnn.generation.complete import complete
from sketchdnn.generation.generate import stream
from sketchdnn.server import schema
from sketchdnn.server.jobs import ENDED
from sketchdnn.server.model_calls import result_record
from sketchdnn.server.service import ModelInfo

STEPS = 8
PART = OPEN_PLATE.to_dict()


@pytest.fixture(scope="module")
def model(model_info: ModelInfo) -> SketchDNN:
    return SketchDNN(model_info.system)


def test_generated_sketches_are_those_of_the_library(server: RunningServer, model: SketchDNN) -> None:
    body = {"count": 2, "seed": 7, "start_index": 3, "steps": STEPS, "primitives": [9, 12], "size": "4in"}
    answer = server.ok("/generate", body)
    schema.ResultsAnswer.model_validate(answer)
    request = GenerateRequest.parse(count=2, seed=7, start_index=3, steps=STEPS, primitives=(9, 12), size="4in")
    assert answer["results"] == [result_record(each) for each in stream(model.system, request)]
    assert [each["index"] for each in answer["results"]] == [3, 4]
    assert all(9 <= len(each["sketch"]["primitives"]) <= 12 or each["shortfall"] for each in answer["results"])


def test_variations_and_rounding_are_those_of_the_library(server: RunningServer, model: SketchDNN) -> None:
    first = server.ok("/generate", {"seed": 7, "steps": STEPS, "round": "auto"})["results"][0]
    assert "rounded" in first["repair"]["summary"]
    body = {"init_sketch": first["sketch"], "strength": 0.4, "seed": 1, "steps": STEPS}
    (result,) = server.ok("/variations", body)["results"]
    sketch = schema.SketchModel.model_validate(first["sketch"]).parse()
    assert result["sketch"] == model.generate(1, seed=1, steps=STEPS, init_sketch=sketch, strength=0.4)[0].to_dict()


def test_completions_begin_with_the_part_to_the_bit(server: RunningServer, model: SketchDNN) -> None:
    sent = {**PART, "primitives": [{**PART["primitives"][0], "layer": "a"}, *PART["primitives"][1:]]}
    answer = server.ok("/complete", {"part": sent, "count": 2, "steps": STEPS, "goal": "inside", "candidates": 2})
    schema.ResultsAnswer.model_validate(answer)
    request = CompleteRequest(part=OPEN_PLATE, count=2, steps=STEPS, goal="inside", candidates=2)
    expected = [result_record(each) for each in complete(model.system, request)]
    assert [each["sketch"]["primitives"][4:] for each in answer["results"]] == [
        each["sketch"]["primitives"][4:] for each in expected
    ]
    assert [each["score"] for each in answer["results"]] == [each["score"] for each in expected]
    for each in answer["results"]:
        assert each["num_given"] == 4
        assert each["sketch"]["primitives"][:4] == sent["primitives"]
        assert each["sketch"]["constraints"][:2] == PART["constraints"]


def test_trajectory_ends_in_the_place_and_size_of_the_sketch(server: RunningServer) -> None:
    answer = server.ok("/trajectory", {"seed": 7, "index": 1, "steps": STEPS, "frames": 4, "repair": False})
    schema.TrajectoryAnswer.model_validate(answer)
    times = [frame["t"] for frame in answer["frames"]]
    assert times == sorted(times, reverse=True)
    assert times[-1] == 0
    last = [item["primitive"] for item in answer["frames"][-1]["items"]]
    assert len(last) == len(answer["sketch"]["primitives"])
    for drawn, own in zip(last, answer["sketch"]["primitives"], strict=True):
        if own["type"] == "line":
            assert drawn["start"] == pytest.approx(own["start"], abs=1e-6)
    (result,) = server.ok("/generate", {"seed": 7, "start_index": 1, "steps": STEPS, "repair": False})["results"]
    assert answer["sketch"] == result["sketch"]


def test_events_report_progress_and_every_sketch(server: RunningServer) -> None:
    headers = {"accept": "text/event-stream"}
    # The last sketch takes long enough for a report of progress.
    body = {"count": 17, "seed": 3, "steps": 40, "repair": False}
    with server.client.stream("POST", f"{API}/generate", json=body, headers=headers) as response:
        assert response.headers["content-type"].startswith("text/event-stream")
        events = events_of(response)
    names = [name for name, _ in events]
    assert (names[0], names[-1], names.count("sketch")) == ("job", "done", 17)
    done = [data["done"] for name, data in events if name == "progress"]
    assert done == sorted(done)
    assert [data["index"] for name, data in events if name == "sketch"] == list(range(17))
    # The first sketches arrive before the last are drawn.
    assert "progress" in names[names.index("sketch") :]
    state = server.get(f"/jobs/{events[0][1]['id']}").json()
    schema.JobAnswer.model_validate(state)
    assert (state["state"], state["progress"], state["position"]) == ("done", 1, 0)


def test_failed_job_is_an_event_and_a_status(server: RunningServer) -> None:
    body = {"count": 1, "novel": True, "primitives": 99}
    status, sentence = server.refused("/generate", body)
    assert status == 400
    response = server.post("/generate", body, headers={"accept": "text/event-stream"})
    assert events_of(response)[-1] == ("error", {"error": sentence, "status": 400})


def test_requests_that_share_a_batch_get_their_own_sketches(server: RunningServer, model: SketchDNN) -> None:
    bodies: list[tuple[str, dict[str, Any]]] = [
        ("/generate", {"count": 1 + seed % 3, "seed": 2**64 - 1 - seed, "steps": STEPS, "repair": False})
        for seed in range(8)
    ]
    bodies += [("/generate", {"seed": 5, "steps": STEPS, "primitives": 10, "repair": False})]
    bodies += [
        ("/complete", {"part": PART, "seed": seed, "count": 1, "steps": STEPS, "candidates": 2}) for seed in (1, 2)
    ]
    alone = [server.ok(path, body)["results"] for path, body in bodies]
    assert server.service is not None
    counts = server.service.model.counts
    before = counts.batches
    calls: list[Callable[[], Any]] = [partial(server.ok, path, body) for path, body in bodies]
    assert [answer["results"] for answer in together(calls)] == alone
    assert counts.batches - before < len(bodies)
    expected = model.generate(3, seed=2**64 - 1 - 2, steps=STEPS, repair=False)
    assert [each["sketch"] for each in alone[2]] == [sketch.to_dict() for sketch in expected]


LONG = {"count": 64, "steps": 500, "repair": False}


def wait_until(server: RunningServer, condition: Callable[[], bool]) -> None:
    """Wait for what another thread does, at most half a minute."""
    assert server.service is not None
    pause = threading.Event()
    for _ in range(3000):
        if condition():
            return
        pause.wait(0.01)
    raise AssertionError("it did not happen")


def test_delete_cancels_a_job_and_frees_the_model(server: RunningServer) -> None:
    assert server.service is not None
    jobs = server.service.jobs
    headers = {"accept": "text/event-stream"}
    with server.client.stream("POST", f"{API}/generate", json=LONG, headers=headers) as response:
        events = read_events(response.iter_lines())
        _, job = next(events)
        for name, _ in events:
            if name == "progress":
                break
        with httpx.Client(base_url=server.url) as other:
            assert other.delete(f"{API}/jobs/{job['id']}").status_code == 204
        assert [*events][-1] == ("error", {"error": "The job was canceled.", "status": 409})
    state = server.get(f"/jobs/{job['id']}").json()
    assert (state["state"], state["error"]) == ("canceled", "The job was canceled.")
    assert server.client.delete(f"{API}/jobs/{job['id']}").status_code == 204
    wait_until(server, lambda: jobs.numbers == (0, 0))
    assert server.ok("/generate", {"steps": 4, "repair": False})["seconds"] < 20


@pytest.mark.parametrize("accept", ["text/event-stream", "application/json"])
def test_closing_the_connection_cancels(server: RunningServer, accept: str) -> None:
    assert server.service is not None
    jobs = server.service.jobs
    job = threading.Event()

    def ask() -> None:
        with (
            httpx.Client(base_url=server.url, timeout=0.5) as client,
            client.stream("POST", f"{API}/generate", json=LONG, headers={"accept": accept}) as response,
        ):
            next(response.iter_lines())
            job.set()

    if accept == "application/json":
        with pytest.raises(httpx.ReadTimeout):
            ask()
    else:
        ask()
        assert job.is_set()
    wait_until(server, lambda: jobs.numbers == (0, 0))
    last = list(jobs._jobs.values())[-1]
    assert (last.state in ENDED, last.state) == (True, "canceled")
