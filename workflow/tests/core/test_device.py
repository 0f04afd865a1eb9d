"""Which device is taken, and what an unanswering one says."""

from __future__ import annotations

import ctypes
from collections.abc import Callable

import pytest
from transpose_study import device
from transpose_study.errors import StudyError


def gpu(ordinal: int, uuid: str, name: str = "NVIDIA GeForce RTX 5060 Laptop GPU") -> device.Device:
    """An RTX 5060 Laptop: 128 bit at 12 GHz (24 Gbit/s a pin) give 384 GB/s, as its data sheet says."""
    return device.Device(
        name=name, uuid=uuid, ordinal=ordinal, compute_capability="12.0", sm_count=26, l2_bytes=32 * 2**20, memory_bytes=8 * 2**30,
        clock_khz=2_000_000, memory_clock_khz=12_000_000, memory_bus_bits=128, threads_per_sm=1536, registers_per_sm=65536, blocks_per_sm=24,
        shared_bytes_per_sm=102400, ecc=False, driver_cuda="13.0",
    )  # fmt: skip


TWO = [gpu(0, "GPU-aaaa1111-0000"), gpu(1, "GPU-aaaa2222-0000", "NVIDIA H200")]


def test_facts() -> None:
    assert TWO[0].peak_gb_s == 384.0 and TWO[0].architecture == "120" and TWO[1].slug == "nvidia-h200"
    assert TWO[0].as_dict()["peak_gb_s"] == 384.0


@pytest.mark.parametrize(
    ("wanted", "ordinal"),
    [("auto", 0), (0, 0), (1, 1), ("1", 1), ("GPU-aaaa2222-0000", 1), ("gpu-AAAA2", 1)],
)
def test_chosen(wanted: str | int, ordinal: int) -> None:
    assert device.choose(wanted, TWO).ordinal == ordinal


@pytest.mark.parametrize(
    ("wanted", "words"),
    [
        (2, "there is no device with index 2"),
        (-1, "there is no device with index -1"),
        ("²", "names no visible device"),
        ("GPU-aaaa", "names more than one device"),
        ("GPU-bbbb", "names no visible device"),
        ("aaaa1111", "names no visible device"),  # a UUID begins with GPU-
        ("h200", "names no visible device"),
    ],
)
def test_refused_with_the_visible_ones_listed(wanted: str | int, words: str) -> None:
    with pytest.raises(StudyError) as caught:
        device.choose(wanted, TWO)
    assert words in str(caught.value) and "1: NVIDIA H200 GPU-aaaa2222-0000" in str(caught.value)


class Driver:
    """What the driver library answers; its real answers to a GPU are tested on one."""

    def __init__(self, code: int, count: int = 0) -> None:
        self.cuInit = lambda flags: code
        self._count = count

    def cuDeviceGetCount(self, pointer: ctypes._Pointer[ctypes.c_int]) -> int:
        pointer._obj.value = self._count
        return 0


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    def make(driver: Driver | None, hardware: str, visible: str | None = None) -> None:
        monkeypatch.setattr(device, "_load_driver", lambda: driver)
        monkeypatch.setattr(device, "hardware_present", lambda: hardware)
        monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
        if visible is not None:
            monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)

    return make


@pytest.mark.parametrize(
    ("driver", "hardware", "visible"),
    [
        (None, "", None),  # no NVIDIA device at all
        (Driver(100), "", None),  # CUDA_ERROR_NO_DEVICE: a driver without a device
        (Driver(100), "/dev/nvidia0", ""),  # the user hides it
        (Driver(34), "", None),  # CUDA_ERROR_STUB_LIBRARY: a container image's stub, no device passed through
        (Driver(0), "/dev/nvidia0", ""),
    ],
)
def test_no_device_is_no_error(machine: Callable[..., None], driver: Driver | None, hardware: str, visible: str | None) -> None:
    machine(driver, hardware, visible)
    assert device.visible_devices() == []


@pytest.mark.parametrize(
    ("driver", "words"),
    [
        (None, "its driver library libcuda.so.1 is not"),
        (Driver(100), "the NVIDIA driver does not answer (cuInit gives error 100)"),
        (Driver(803), "the NVIDIA driver does not answer (cuInit gives error 803)"),  # CUDA_ERROR_SYSTEM_DRIVER_MISMATCH
    ],
)
def test_device_that_does_not_answer_is_an_error_and_no_replay(machine: Callable[..., None], driver: Driver | None, words: str) -> None:
    machine(driver, "/dev/nvidia0")
    with pytest.raises(StudyError) as caught:
        device.visible_devices()
    assert words in str(caught.value) and "device=archive" in str(caught.value)
