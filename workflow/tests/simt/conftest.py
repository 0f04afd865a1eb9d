"""Fixtures of the prediction engine's tests: kernels compiled once for the session."""

from __future__ import annotations

import pytest
from launches import LADDER, STUDY, Compiled, Compiler


@pytest.fixture(scope="session")
def compiler(tmp_path_factory):
    return Compiler(tmp_path_factory.mktemp("compiled"))


@pytest.fixture(scope="session")
def ladder(compiler):
    """``ladder(name, architecture)``: a kernel of the registry by its file name, such as ``tiled_padded_b8``."""

    def build(name: str, architecture: str = "120") -> Compiled:
        kernel = LADDER[name]
        flags = tuple(f"-D{m}={v}" for m, v in STUDY.macros(kernel).items())
        assert kernel.variant.source is not None
        return compiler(kernel.variant.source, architecture, flags, kernel.variant.name)

    return build
