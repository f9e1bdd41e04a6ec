"""Devices by name, and threads that sleep while they wait."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest
import torch

from sketchdnn.errors import SketchError
from sketchdnn.systems.devices import find_device, passive_threads, usable_cores

# Processor time of waiting threads before, during and after a call. PyTorch is imported first, without a setting.
SCRIPT = """
import json, time, torch
numbers = torch.ones(1 << 18)

def waited(_=0):
    begun = time.process_time()
    for _ in range(10):
        numbers.add_(1)
        time.sleep(0.02)
    return time.process_time() - begun

from sketchdnn.generation import GenerateRequest, stream
from sketchdnn.systems import load_preset
torch.set_num_threads(2)
system = load_preset("tiny").make().eval()
waited()
before, during = waited(), []
request = GenerateRequest(steps=4, repair=False)
list(stream(system, request, lambda done: during.append(waited()) if done < 1 else None))
print(json.dumps([before, min(during), waited(), torch.get_num_threads()]))
"""


def test_absent_devices_are_refused_and_threads_restored() -> None:
    for name in ("tpu", "cpu:3", "cuda:x", "cuda:", "auto:1", ""):
        with pytest.raises(SketchError, match="use auto, cpu, cuda or cuda:1"):
            find_device(name)
    assert find_device() == find_device("auto") == ("cuda" if torch.cuda.is_available() else "cpu")
    if not torch.cuda.is_available():
        with pytest.raises(SketchError, match="no CUDA device"):
            find_device("cuda")
    threads = torch.get_num_threads()
    with passive_threads(), passive_threads():
        torch.ones(1 << 18).add_(1)
    assert torch.get_num_threads() == threads


@pytest.mark.skipif(not sys.platform.startswith("linux") or usable_cores() < 2, reason="needs GNU OpenMP and two cores")
def test_threads_do_not_spin_during_a_call() -> None:
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("OMP_", "GOMP_"))}
    done = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, text=True, check=True, env=environment)
    before, during, after, threads = json.loads(done.stdout)
    assert during < before / 4
    assert after > before / 4
    assert threads == 2
