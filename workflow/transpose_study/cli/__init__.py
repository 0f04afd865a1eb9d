"""The command ``transpose-study``: one module of this package for each group of sub-commands.

A module registers its sub-commands with ``add(subparsers)``; what a sub-command needs beyond argparse is imported
when it runs, so that ``--help`` and the rules that need little start quickly.
"""

from __future__ import annotations

import argparse
import os
import sys
import traceback
from collections.abc import Sequence

from transpose_study import __version__
from transpose_study.cli import analyse, archive, build, doctor, explain, measure, predict, prepare
from transpose_study.cli.common import Command
from transpose_study.errors import StudyError
from transpose_study.progress import Log


def parser() -> argparse.ArgumentParser:
    """The whole command line."""
    top = argparse.ArgumentParser(
        prog="transpose-study", description="Build, check, time, profile and write up CUDA matrix-transpose kernels."
    )
    top.add_argument("--version", action="version", version=__version__)
    commands = top.add_subparsers(dest="command", required=True, metavar="COMMAND", parser_class=Command)
    for module in (prepare, build, measure, predict, analyse, explain, archive, doctor):
        module.add(commands)
    return top


def main(argv: Sequence[str] | None = None) -> int:
    """Run one sub-command; a user's mistake ends in one message and exit status 2, never in a stack trace."""
    args = parser().parse_args(argv)
    log = Log(getattr(args, "log", None))
    try:
        return int(args.run_command(args, log) or 0)
    except StudyError as error:
        log.say(f"transpose-study {args.command}: {error}")
        return error.exit_code
    except KeyboardInterrupt:
        log.say(f"transpose-study {args.command}: stopped by the user; nothing half-written was left")
        return 130
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except Exception:  # a fault of this program: the trace goes where it can be reported from
        log.say(traceback.format_exc().rstrip())
        log.say(f"transpose-study {args.command}: this is a fault of the program, not of your input; please report it")
        return 70
    finally:
        log.close()
