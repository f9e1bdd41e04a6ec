"""Packed blocks compute what the blocks themselves compute."""

import pytest
import torch
from support.small_systems import small_system
from support.students import small_teacher

from sketchdnn.diffusion import SamplingOptions, seeded_noise
from sketchdnn.errors import SketchError
from sketchdnn.generation.engine import inference_system, precision, set_precision
from sketchdnn.networks.low_rank import adapters, add_adapters
from sketchdnn.networks.packed import PackedBlock, can_pack, pack, packs_alike
from sketchdnn.networks.set_denoiser import SetDenoiser, SetDenoiserConfig
from sketchdnn.systems import System, from_pretrained
from sketchdnn.systems.students import make_student

pytestmark = pytest.mark.skipif(not can_pack(), reason="this build of PyTorch packs no weights")


def sampled(system: System, batch: int = 3, steps: int = 2) -> torch.Tensor:
    with torch.no_grad():
        return system.sample(seeded_noise(5, torch.arange(batch)), SamplingOptions(steps=steps)).flat()


def network(seed: int = 0) -> SetDenoiser:
    torch.manual_seed(seed)
    made = SetDenoiser(SetDenoiserConfig(width=64, depth=2, heads=2)).eval()
    for weight in made.parameters():
        torch.nn.init.normal_(weight, std=0.1)
    return made


def block_outputs(plain: SetDenoiser, packed: SetDenoiser) -> list[torch.Tensor]:
    h, shared = torch.randn(3, 16, 64), torch.randn(3, 1, 6, 64)
    with torch.no_grad():
        return [one.blocks[1](h, shared) for one in (plain, packed)]


def test_float32_differs_by_rounding_only() -> None:
    plain = network()
    torch.testing.assert_close(*block_outputs(plain, pack(plain, torch.float32)), rtol=1e-5, atol=1e-5)


def test_adapters_are_packed_with_their_changes() -> None:
    plain = network()
    add_adapters(plain, rank=2)
    for layer in adapters(plain):
        torch.nn.init.normal_(layer.low_rank_up)
        layer.merge()
    torch.testing.assert_close(*block_outputs(plain, pack(plain, torch.float32)), rtol=1e-5, atol=1e-5)


def test_changed_weights_are_packed_again() -> None:
    plain = network()
    first = pack(plain, torch.float32)
    assert pack(plain, torch.float32) is first
    with torch.no_grad():
        plain.blocks[1].down.weight.mul_(2)
    assert pack(plain, torch.float32) is not first
    torch.testing.assert_close(*block_outputs(plain, pack(plain, torch.float32)), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("batch", [1, 3, 16])
def test_default_precision_keeps_every_bit(batch: int) -> None:
    system = from_pretrained()
    fast = inference_system(system)
    narrow = precision(system) == "bfloat16"
    assert (fast is not system) == packs_alike(system.network, getattr(torch, precision(system)), (1, 16))
    with torch.autocast("cpu", torch.bfloat16, enabled=narrow):
        torch.testing.assert_close(sampled(fast, batch), sampled(system, batch), rtol=0, atol=0)


def test_a_precision_is_used_by_the_student_too() -> None:
    teacher = small_teacher()
    teacher.attach_student(make_student(teacher, "flow_map").eval())
    set_precision(teacher.eval(), "float32")
    fast = inference_system(teacher)
    for system in (fast, fast.student):
        assert all(isinstance(block, PackedBlock) for block in system.network.blocks)
    assert not any(isinstance(block, PackedBlock) for block in teacher.network.blocks)
    assert fast.state_dict().keys() < teacher.state_dict().keys()
    torch.testing.assert_close(sampled(fast), sampled(teacher), rtol=1e-3, atol=1e-3)


def test_training_systems_are_not_packed() -> None:
    system = small_system()
    set_precision(system, "float32")
    assert inference_system(system) is not system
    assert inference_system(system.train()) is system


def test_invalid_precisions_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    system = small_system()
    with pytest.raises(SketchError, match="auto, float32, bfloat16"):
        set_precision(system, "int4")
    monkeypatch.setattr("sketchdnn.generation.engine._supports_bfloat16", lambda device: False)
    with pytest.raises(SketchError, match="no bfloat16"):
        set_precision(system, "bfloat16")
    assert system.precision == "auto"
