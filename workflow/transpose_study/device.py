"""Which NVIDIA devices are here, read from the driver library alone (no CUDA context, no CuPy, no nvidia-smi)."""

from __future__ import annotations

import ctypes
import glob
import os
import re
import uuid
from dataclasses import asdict, dataclass
from pathlib import Path

from transpose_study.errors import StudyError

CUDA_ERROR_NO_DEVICE = 100  # cuInit's answer where the driver works and nothing is visible

# Values of CUdevice_attribute (CUDA driver API, cuda.h).
_ATTRIBUTES = {
    "clock_khz": 13,
    "sm_count": 16,
    "ecc": 32,
    "memory_clock_khz": 36,
    "memory_bus_bits": 37,
    "l2_bytes": 38,
    "threads_per_sm": 39,
    "major": 75,
    "minor": 76,
    "shared_bytes_per_sm": 81,
    "registers_per_sm": 82,
    "blocks_per_sm": 106,
}


@dataclass(frozen=True)
class Device:
    """Facts of one GPU. Bytes and kHz as the driver gives them; ``peak_gb_s`` is in 10^9 bytes a second."""

    name: str
    uuid: str
    ordinal: int
    compute_capability: str
    sm_count: int
    l2_bytes: int
    memory_bytes: int
    clock_khz: int
    memory_clock_khz: int
    memory_bus_bits: int
    threads_per_sm: int
    registers_per_sm: int
    blocks_per_sm: int
    shared_bytes_per_sm: int
    ecc: bool
    driver_cuda: str

    @property
    def architecture(self) -> str:
        """Compute capability without its dot, as nvcc takes it: ``90``."""
        return self.compute_capability.replace(".", "")

    @property
    def slug(self) -> str:
        """Folder name of the device: ``nvidia-h200``."""
        return slug(self.name)

    @property
    def peak_gb_s(self) -> float:
        """Nominal memory bandwidth: two transfers a clock over the bus."""
        return 2 * self.memory_clock_khz * 1e3 * self.memory_bus_bits / 8 / 1e9

    def as_dict(self) -> dict[str, object]:
        """All facts, for environment.json."""
        return asdict(self) | {"peak_gb_s": self.peak_gb_s}


def slug(name: str) -> str:
    """Lower-case letters, digits and single hyphens."""
    return re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")


def hardware_present() -> str:
    """What shows that an NVIDIA device is built in or passed through, "" where nothing does."""
    for node in [*sorted(glob.glob("/dev/nvidia[0-9]*")), "/dev/nvidiactl"]:
        if os.path.exists(node):
            return node
    if os.path.exists("/dev/dxg") and os.path.exists("/usr/lib/wsl/lib/libcuda.so.1"):
        return "/dev/dxg (WSL2)"
    for vendor in glob.glob("/sys/bus/pci/devices/*/vendor"):
        try:
            kind = Path(vendor).with_name("class").read_text()
            if Path(vendor).read_text().strip() == "0x10de" and kind.startswith("0x03"):
                return f"PCI device {Path(vendor).parent.name}"
        except OSError:
            continue
    return ""


def _load_driver() -> ctypes.CDLL | None:
    for name in ("libcuda.so.1", "/usr/lib/wsl/lib/libcuda.so.1"):
        try:
            return ctypes.CDLL(name)
        except OSError:
            continue
    return None


def visible_devices() -> list[Device]:
    """All devices CUDA shows to this process, in CUDA's order (so CUDA_VISIBLE_DEVICES is honoured).

    An empty list where no NVIDIA device exists. A device that is there and does not answer is a :class:`StudyError`.
    """
    driver = _load_driver()
    found = hardware_present()
    escape = "mend the driver (nvidia-smi must list the GPU), or rebuild from an archive with --config device=archive"
    if driver is None:
        if found:
            raise StudyError("an NVIDIA device is here, but its driver library libcuda.so.1 is not", where=found, hint=escape)
        return []
    code = driver.cuInit(0)
    if code == CUDA_ERROR_NO_DEVICE and (not found or "CUDA_VISIBLE_DEVICES" in os.environ):
        return []
    if code and not found:
        return []  # a driver library in a container image, and no device behind it
    if code:
        raise StudyError(f"the NVIDIA driver does not answer (cuInit gives error {code})", where=found, hint=escape)
    count = ctypes.c_int()
    _check(driver.cuDeviceGetCount(ctypes.byref(count)), "cuDeviceGetCount")
    return [_describe(driver, i) for i in range(count.value)]


def _check(code: int, call: str) -> None:
    if code:
        raise StudyError(f"the NVIDIA driver does not answer ({call} gives error {code})", hint="nvidia-smi shows its state")


def _describe(driver: ctypes.CDLL, ordinal: int) -> Device:
    handle = ctypes.c_int()
    _check(driver.cuDeviceGet(ctypes.byref(handle), ordinal), "cuDeviceGet")
    name = ctypes.create_string_buffer(256)
    _check(driver.cuDeviceGetName(name, 256, handle), "cuDeviceGetName")
    raw = (ctypes.c_ubyte * 16)()
    get_uuid = getattr(driver, "cuDeviceGetUuid_v2", driver.cuDeviceGetUuid)
    _check(get_uuid(raw, handle), "cuDeviceGetUuid")
    memory = ctypes.c_size_t()
    _check(driver.cuDeviceTotalMem_v2(ctypes.byref(memory), handle), "cuDeviceTotalMem")
    version = ctypes.c_int()
    _check(driver.cuDriverGetVersion(ctypes.byref(version)), "cuDriverGetVersion")
    facts: dict[str, int] = {}
    for key, number in _ATTRIBUTES.items():
        value = ctypes.c_int()
        _check(driver.cuDeviceGetAttribute(ctypes.byref(value), number, handle), f"cuDeviceGetAttribute({key})")
        facts[key] = value.value
    major, minor = facts.pop("major"), facts.pop("minor")
    ecc = bool(facts.pop("ecc"))
    return Device(
        name=name.value.decode(),
        uuid=f"GPU-{uuid.UUID(bytes=bytes(raw))}",
        ordinal=ordinal,
        compute_capability=f"{major}.{minor}",
        memory_bytes=memory.value,
        driver_cuda=f"{version.value // 1000}.{version.value % 1000 // 10}",
        ecc=ecc,
        **facts,
    )


def choose(wanted: str | int, devices: list[Device]) -> Device:
    """Pick a device by ``auto`` (the first), CUDA index or UUID (a unique beginning is enough)."""
    listing = "; ".join(f"{d.ordinal}: {d.name} {d.uuid}" for d in devices) or "none"
    hint = f"visible devices: {listing}"
    if wanted == "auto" and devices:
        return devices[0]
    if isinstance(wanted, int) or str(wanted).isdecimal():
        if 0 <= int(wanted) < len(devices):
            return devices[int(wanted)]
        raise StudyError(f"there is no device with index {wanted}", where="configuration, key device", hint=hint)
    matches = [d for d in devices if d.uuid.lower().startswith(str(wanted).lower()) and str(wanted).lower().startswith("gpu-")]
    if len(matches) == 1:
        return matches[0]
    raise StudyError(
        f"{wanted!r} names {'more than one device' if matches else 'no visible device'}", where="configuration, key device", hint=hint
    )
