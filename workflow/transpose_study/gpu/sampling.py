"""One timing sample: a device-side interval without launch latency, hot or cold.

A delay kernel keeps the stream busy until everything up to the end event is queued, so the device runs it back to back.
If the start event had passed before the host was done queueing, the sample would contain host time: it is thrown away
and taken again behind a longer delay.
"""

from __future__ import annotations

from dataclasses import dataclass

import cupy
import numpy as np
from cupy.cuda import runtime

from transpose_study.errors import StudyError
from transpose_study.gpu.session import Launch, Session

FIRST_DELAY_CYCLES = 100_000  # about 50 us; doubled as long as queueing takes longer
MAX_DELAY_CYCLES = 200_000_000
MIN_LAUNCHES = 2


@dataclass
class Cold:
    """What displaces the L2 before a cold sample: a buffer of at least its size, overwritten."""

    pointer: int
    size: int


class Sampler:
    """Takes samples on one session's stream."""

    def __init__(self, session: Session, cold: Cold | None) -> None:
        self._session, self._cold = session, cold
        self._start, self._end = cupy.cuda.Event(), cupy.cuda.Event()
        self._delays = {"hot": FIRST_DELAY_CYCLES, "cold": FIRST_DELAY_CYCLES}
        self._byte = 0

    def hot(self, launch: Launch, launches: int) -> float:
        """Microseconds of one launch: ``launches`` back to back behind one that is not counted, divided by their number."""
        return self._sample("hot", launch, launches) / launches

    def cold(self, launch: Launch) -> float:
        """Microseconds of one launch after the L2 was overwritten."""
        return self._sample("cold", launch, 1)

    def _sample(self, mode: str, launch: Launch, launches: int) -> float:
        stream = self._session.stream
        while True:
            self._session.delay_kernel((1,), (1,), (np.int64(self._delays[mode]),), 0, stream)
            if mode == "cold":
                assert self._cold is not None
                self._byte = (self._byte + 1) % 256  # new bytes each time, so that no flush can be skipped as a repetition
                runtime.memsetAsync(self._cold.pointer, self._byte, self._cold.size, stream.ptr)
            else:
                launch()
            self._start.record(stream)
            for _ in range(launches):
                launch()
            self._end.record(stream)
            queued_in_time = not self._start.done
            self._end.synchronize()
            if queued_in_time:
                return float(cupy.cuda.get_elapsed_time(self._start, self._end)) * 1e3
            self._delays[mode] *= 2
            if self._delays[mode] > MAX_DELAY_CYCLES:
                raise StudyError(
                    "the host cannot queue launches fast enough to time them on the device",
                    hint="the machine is overloaded: end other programs, then run again",
                )

    def launches_for(self, estimate_us: float, window_us: float, most: int) -> int:
        """Back-to-back launches that fill the window."""
        return max(MIN_LAUNCHES, min(most, round(window_us / max(estimate_us, 0.1))))
