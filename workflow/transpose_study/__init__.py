"""The transpose study: build, check, time, profile and write up CUDA matrix-transpose kernels."""

__version__ = "0.1.0"
