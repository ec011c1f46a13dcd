"""The table of device and number type, for machines that are not here."""

import pytest

from pellucid.errors import ConfigError
from pellucid.train.device import Capabilities, check_device, check_precision, training_precisions

MACHINES = {
    "a CPU": Capabilities(),
    "an old CUDA device": Capabilities(cuda=True),
    "a CUDA device": Capabilities(cuda=True, cuda_bfloat16=True),
    "a Mac": Capabilities(mps=True),
}


@pytest.mark.parametrize(
    ("machine", "device", "precisions"),
    [
        ("a CPU", "cpu", ("bfloat16", "float32")),
        ("an old CUDA device", "cpu", ("bfloat16", "float32")),
        ("an old CUDA device", "cuda", ("float32",)),
        ("a CUDA device", "cuda", ("bfloat16", "float32")),
        ("a Mac", "mps", ("float32",)),
    ],
)
def test_what_a_device_trains_in(machine, device, precisions):
    assert training_precisions(device, MACHINES[machine]) == precisions


@pytest.mark.parametrize(
    ("machine", "devices", "best"),
    [("a CPU", ("cpu",), "cpu"), ("a CUDA device", ("cpu", "cuda"), "cuda"), ("a Mac", ("cpu", "mps"), "cpu")],
)
def test_which_devices_there_are_and_which_is_taken(machine, devices, best):
    assert MACHINES[machine].devices == devices
    assert check_device("auto", MACHINES[machine]) == MACHINES[machine].best_device == best


def test_a_device_that_is_asked_for_is_taken_if_it_is_there():
    assert check_device("mps", MACHINES["a Mac"]) == "mps"
    with pytest.raises(ConfigError, match=r"cpu or mps.*'cuda'"):
        check_device("cuda", MACHINES["a Mac"])


@pytest.mark.parametrize("machine", MACHINES)
def test_float16_is_refused_everywhere_with_the_reason(machine):
    for device in MACHINES[machine].devices:
        with pytest.raises(ConfigError, match=r"loss scaling.*overflow"):
            check_precision(device, "float16", MACHINES[machine])


def test_bfloat16_is_refused_where_the_hardware_has_none():
    with pytest.raises(ConfigError, match=r"no bfloat16 in the hardware.*train in float32"):
        check_precision("cuda", "bfloat16", MACHINES["an old CUDA device"])


def test_what_a_device_can_do_is_given_back():
    assert check_precision("cpu", "bfloat16", MACHINES["a CPU"]) == "bfloat16"


def test_an_unknown_number_type_is_refused_by_name():
    with pytest.raises(ConfigError, match="'float8'"):
        check_precision("cpu", "float8", MACHINES["a CPU"])


def test_a_machine_without_accelerators_is_seen_as_one(monkeypatch):
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    monkeypatch.setattr("torch.backends.mps.is_available", lambda: False)
    assert Capabilities.of_this_machine().devices == ("cpu",)


def test_a_cuda_device_that_only_emulates_bfloat16_has_none(monkeypatch):
    monkeypatch.setattr("torch.cuda.is_available", lambda: True)
    monkeypatch.setattr("torch.cuda.is_bf16_supported", lambda including_emulation=True: including_emulation)
    assert training_precisions("cuda", Capabilities.of_this_machine()) == ("float32",)


def test_a_machine_without_a_compiler_says_so(monkeypatch):
    monkeypatch.setenv("PATH", "")
    monkeypatch.delenv("CXX", raising=False)
    assert Capabilities.of_this_machine().compiler is None
