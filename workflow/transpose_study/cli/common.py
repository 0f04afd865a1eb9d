"""Arguments that several sub-commands share."""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from transpose_study.errors import StudyError


class Command(argparse.ArgumentParser):
    """A sub-command's parser. ``late`` may add options that depend on the arguments themselves, just before they are parsed."""

    late: Callable[[argparse.ArgumentParser, Sequence[str]], None] | None = None

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        """As argparse's, after ``late``."""
        if self.late is not None and args is not None:
            late, self.late = self.late, None
            late(self, args)
        return super().parse_known_args(args, namespace)


def add_log(parser: argparse.ArgumentParser) -> None:
    """``--log FILE``: where messages go beside stderr."""
    parser.add_argument("--log", type=Path, help="also write all messages into this file")


def add_run(parser: argparse.ArgumentParser) -> None:
    """``--run FOLDER``: the results folder."""
    parser.add_argument("--run", type=Path, required=True, help="results folder, such as results/nvidia-h200/transpose")
    add_log(parser)


def add_settings(parser: argparse.ArgumentParser) -> None:
    """``--settings JSON``: the slice of the configuration this step depends on."""
    parser.add_argument("--settings", required=True, help="slice of the configuration, as JSON (snakemake -p prints it)")


def settings(args: argparse.Namespace) -> dict[str, Any]:
    """The parsed ``--settings``."""
    try:
        value = json.loads(args.settings)
    except json.JSONDecodeError as error:
        raise StudyError(f"--settings is no JSON: {error.msg} at column {error.colno}") from None
    if not isinstance(value, dict):
        raise StudyError("--settings is no JSON object")
    return value
