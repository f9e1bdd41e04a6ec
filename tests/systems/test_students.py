"""Students: the predictions of their teacher at first, stored beside it, and chosen for few steps."""

import json
from pathlib import Path

import pytest
import torch
from support.random_batches import clean_batch
from support.students import small_teacher

from sketchdnn.diffusion import SamplingOptions, seeded_noise
from sketchdnn.errors import SketchError
from sketchdnn.networks.low_rank import adapters
from sketchdnn.systems import PretrainedError, from_pretrained, save_pretrained
from sketchdnn.systems.pretrained import save_student
from sketchdnn.systems.row_denoiser import null_prediction
from sketchdnn.systems.sketchdnn import SketchDNNSystem
from sketchdnn.systems.students import make_student, student_rank


def _trained(teacher: SketchDNNSystem, rank: int, method: str = "moment_matching") -> SketchDNNSystem:
    """A student that differs from its teacher in all that is trained."""
    student = make_student(teacher, method, rank)  # type: ignore[arg-type]
    for weight in student.parameters():
        if weight.requires_grad:
            weight.data = weight + torch.randn_like(weight) / 16
    return student.eval()


@pytest.mark.parametrize("rank", [0, 4])
def test_a_new_student_predicts_what_its_teacher_does(rank: int) -> None:
    teacher = small_teacher()
    student = make_student(teacher, "flow_map", rank).eval()
    batch, t = clean_batch(3), torch.tensor([200, 90, 3])
    previous = null_prediction(batch.params)
    one = teacher.denoise(batch, t, previous=previous)
    two = student.denoise(batch, t, previous=previous, s=torch.tensor([100, 10, 0]))
    torch.testing.assert_close(two.params, one.params)
    torch.testing.assert_close(two.kind_logits, one.kind_logits)
    changed = _trained(teacher, rank)
    a, b = (changed.denoise(batch, t, previous=previous, s=torch.full((3,), s)) for s in (0, 2))
    assert not torch.equal(a.params, b.params)


@pytest.mark.parametrize(("rank", "eight_bit"), [(0, False), (4, False), (4, True)])
def test_students_are_stored_beside_their_teacher(tmp_path: Path, rank: int, eight_bit: bool) -> None:
    teacher = small_teacher()
    save_pretrained(teacher, tmp_path / "model", eight_bit=eight_bit)
    plain = from_pretrained(tmp_path / "model")
    assert isinstance(plain, SketchDNNSystem)
    student = _trained(plain, rank)
    save_student(student, tmp_path / "model")
    loaded = from_pretrained(tmp_path / "model")
    assert isinstance(loaded, SketchDNNSystem)
    assert loaded.student is not None
    assert (
        student_rank(loaded.student)
        == rank
        == json.loads((tmp_path / "model/config.json").read_text())["student"]["rank"]
    )
    options = SamplingOptions(steps=4)
    noise = seeded_noise(0, torch.arange(2))
    loaded_rows, rows = loaded.sample(noise, options), student.sample(noise, options)
    torch.testing.assert_close(loaded_rows.params, rows.params, atol=0.05, rtol=0)
    assert {name for name, _ in loaded.named_parameters()} == {name for name, _ in teacher.named_parameters()}
    # The trunk is untouched, and the whole is stored again as it was loaded.
    many = SamplingOptions(steps=12)
    assert torch.equal(loaded.sample(noise, many).flat(), plain.sample(noise, many).flat())
    save_pretrained(loaded, tmp_path / "again")
    again = from_pretrained(tmp_path / "again")
    torch.testing.assert_close(again.sample(noise, options).params, loaded_rows.params, atol=0.05, rtol=0)
    adapter = tmp_path / "model" / "student.safetensors"
    if rank:
        assert adapter.stat().st_size < (tmp_path / "again" / "model.safetensors").stat().st_size
        assert all(layer.get_buffer("_merged") is not None for layer in adapters(loaded.student))


def test_few_steps_select_the_student() -> None:
    teacher = small_teacher()
    assert teacher.resolve(SamplingOptions(steps=4)).sampler == "restart"
    with pytest.raises(SketchError, match="distill"):
        teacher.resolve(SamplingOptions("few_step", steps=4))
    assert "few_step" not in teacher.available_samplers
    teacher.attach_student(_trained(teacher, 0))
    assert "few_step" in teacher.available_samplers
    assert teacher.resolve(SamplingOptions(steps=8)).sampler == "few_step"
    assert teacher.resolve(SamplingOptions(steps=9)).sampler == "restart"
    assert teacher.resolve(SamplingOptions()).sampler == "restart"
    assert teacher.resolve(SamplingOptions("ancestral", steps=4)).sampler == "ancestral"
    noise = seeded_noise(0, torch.arange(2))
    assert teacher.student is not None
    by_itself = teacher.student.sample(noise, SamplingOptions(steps=3))
    assert torch.equal(teacher.sample(noise, SamplingOptions(steps=3)).flat(), by_itself.flat())


def test_damaged_and_foreign_students_are_refused(tmp_path: Path) -> None:
    teacher = small_teacher()
    teacher.attach_student(_trained(teacher, 4))
    save_pretrained(teacher, tmp_path)
    config = json.loads((tmp_path / "config.json").read_text())
    wrong = ({"rank": 3}, {"rank": 10**9}, {"rank": -1}, {"rank": "x"}, {"method": "none"}, {"sha256": "0"})
    for change in wrong:
        (tmp_path / "config.json").write_text(json.dumps({**config, "student": {**config["student"], **change}}))
        with pytest.raises(PretrainedError):
            from_pretrained(tmp_path)
    (tmp_path / "config.json").write_text(json.dumps({**config, "student": 5}))
    with pytest.raises(PretrainedError):
        from_pretrained(tmp_path)
    with pytest.raises(SketchError, match="student itself"):
        make_student(_trained(teacher, 0), "flow_map")
