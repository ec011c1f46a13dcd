"""Which library multiplies float32 matrices, on processors that are not here."""

import pytest
import torch

from pellucid import float32
from pellucid.float32 import error_of_products, fast_float32, is_amd, onednn_is_exact


@pytest.fixture(autouse=True)
def asked_anew():
    float32.prefers_onednn.cache_clear()
    yield
    float32.prefers_onednn.cache_clear()


@pytest.fixture
def by_amd(monkeypatch):
    monkeypatch.setattr(float32, "is_amd", lambda: True)


def test_products_are_exact_to_begin_with():
    assert error_of_products() < 1e-6


def test_what_is_chosen_here_is_exact(by_amd):
    with fast_float32():
        assert error_of_products() < 1e-6


def test_a_library_that_rounds_is_not_used(by_amd, monkeypatch):
    monkeypatch.setattr(float32, "error_of_products", lambda: 2e-3)
    assert not onednn_is_exact()
    with fast_float32() as onednn:
        assert not onednn
        assert torch.get_float32_matmul_precision() == "highest"


def test_an_exact_one_is_used_where_mkl_is_slow(by_amd, monkeypatch):
    monkeypatch.setattr(float32, "error_of_products", lambda: 3e-7)
    with fast_float32() as onednn:
        assert onednn
        assert torch.get_float32_matmul_precision() == "medium"


def test_mkl_is_kept_on_other_processors(monkeypatch):
    monkeypatch.setattr(float32, "is_amd", lambda: False)
    monkeypatch.setattr(float32, "error_of_products", lambda: 3e-7)
    with fast_float32() as onednn:
        assert not onednn


@pytest.mark.parametrize(("decided", "setting"), [(True, "medium"), (False, "highest")])
def test_what_a_run_has_decided_is_not_decided_again(monkeypatch, decided, setting):
    monkeypatch.setattr(float32, "onednn_is_exact", lambda: pytest.fail("tried"))
    with fast_float32(decided) as onednn:
        assert onednn is decided
        assert torch.get_float32_matmul_precision() == setting


def test_afterwards_torch_is_as_it_was_even_if_the_block_fails():
    before = torch.get_float32_matmul_precision()
    with pytest.raises(KeyError), fast_float32(True):
        raise KeyError
    assert torch.get_float32_matmul_precision() == before


def test_a_setting_by_device_is_left_alone(monkeypatch):
    def refuse():
        raise RuntimeError("mix of the legacy and new APIs")

    monkeypatch.setattr("torch.get_float32_matmul_precision", refuse)
    with fast_float32(True) as onednn:
        assert not onednn


@pytest.mark.parametrize(("vendor", "amd"), [("AuthenticAMD", True), ("GenuineIntel", False)])
def test_who_made_the_processor_is_read(monkeypatch, tmp_path, vendor, amd):
    (tmp_path / "cpuinfo").write_text(f"processor : 0\nvendor_id : {vendor}\n", encoding="utf-8")
    monkeypatch.setattr(float32, "CPU_INFO", tmp_path / "cpuinfo")
    assert is_amd() is amd


def test_where_there_is_no_such_file_the_platform_says_it(monkeypatch, tmp_path):
    monkeypatch.setattr(float32, "CPU_INFO", tmp_path / "none")
    monkeypatch.setattr("platform.processor", lambda: "AMD64 Family 25 Model 33 Stepping 0, AuthenticAMD")
    assert is_amd()
