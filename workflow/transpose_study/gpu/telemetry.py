"""Clocks, temperature, power and throttle reasons of a GPU, through NVML; nothing is ever set."""

from __future__ import annotations

import os
from typing import Any

import pynvml

COLUMNS = ("sm_clock_mhz", "memory_clock_mhz", "temperature_c", "power_w", "throttle_reasons")


class Telemetry:
    """Readings of the GPU with this UUID. A reading the driver does not give is None."""

    def __init__(self, uuid: str) -> None:
        self._handle: Any = None
        try:
            pynvml.nvmlInit()
            self._handle = pynvml.nvmlDeviceGetHandleByUUID(uuid)
        except pynvml.NVMLError:
            return  # NVML is optional: without it the samples stand alone

    def _read(self, function: Any, *arguments: Any) -> Any:
        if self._handle is None:
            return None
        try:
            return function(self._handle, *arguments)
        except pynvml.NVMLError:
            return None

    def now(self) -> dict[str, Any]:
        """The columns of :data:`COLUMNS`."""
        power = self._read(pynvml.nvmlDeviceGetPowerUsage)
        reasons = self._read(pynvml.nvmlDeviceGetCurrentClocksEventReasons)
        return {
            "sm_clock_mhz": self._read(pynvml.nvmlDeviceGetClockInfo, pynvml.NVML_CLOCK_SM),
            "memory_clock_mhz": self._read(pynvml.nvmlDeviceGetClockInfo, pynvml.NVML_CLOCK_MEM),
            "temperature_c": self._read(pynvml.nvmlDeviceGetTemperature, pynvml.NVML_TEMPERATURE_GPU),
            "power_w": None if power is None else power / 1000,
            "throttle_reasons": None if reasons is None else hex(reasons),
        }

    def other_processes(self, own: set[int]) -> list[str]:
        """Other compute processes on the GPU, as text."""
        running = self._read(pynvml.nvmlDeviceGetComputeRunningProcesses) or []
        return [f"PID {p.pid} with {(p.usedGpuMemory or 0) / 2**20:.0f} MiB" for p in running if p.pid not in own | {os.getpid()}]

    def free_bytes(self) -> int | None:
        """Bytes of the GPU's memory that nobody holds."""
        memory = self._read(pynvml.nvmlDeviceGetMemoryInfo)
        return None if memory is None else int(memory.free)

    def facts(self) -> dict[str, Any]:
        """What does not change during a run: driver, power limit, ECC, clock limits, memory."""
        limit = self._read(pynvml.nvmlDeviceGetEnforcedPowerLimit)
        try:
            driver = pynvml.nvmlSystemGetDriverVersion() if self._handle is not None else None
        except pynvml.NVMLError:
            driver = None
        return {
            "driver": driver,
            "power_limit_w": None if limit is None else limit / 1000,
            "max_sm_clock_mhz": self._read(pynvml.nvmlDeviceGetMaxClockInfo, pynvml.NVML_CLOCK_SM),
            "max_memory_clock_mhz": self._read(pynvml.nvmlDeviceGetMaxClockInfo, pynvml.NVML_CLOCK_MEM),
            "persistence_mode": self._read(pynvml.nvmlDeviceGetPersistenceMode),
        }
