"""The command ``transpose-study``: one module of this package for each group of sub-commands.

A module registers its sub-commands with ``add(subparsers)``; what a sub-command needs beyond argparse is imported
when it runs, so that ``--help`` and the rules that need little start quickly.
"""

from __future__ import annotations

import argparse
import errno
import io
import os
import sys
import traceback
from collections.abc import Sequence
from pathlib import Path

from transpose_study import __version__
from transpose_study.cli import analyse, archive, build, diagnose, doctor, explain, measure, predict, prepare, swizzle
from transpose_study.cli.common import Command
from transpose_study.errors import StudyError
from transpose_study.progress import Log

# Errors of the machine rather than of the program: space, quota, permissions, names too long, files and memory used up.
_SURROUNDINGS = frozenset(
    {errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EACCES, errno.EPERM, errno.EROFS, errno.EIO, errno.ENAMETOOLONG, errno.ELOOP}
    | {errno.EMFILE, errno.ENFILE, errno.ENOMEM}
)


def parser() -> argparse.ArgumentParser:
    """The whole command line."""
    top = argparse.ArgumentParser(prog="transpose-study", description="Build, check, time, profile and write up CUDA matrix-transpose kernels.")
    top.add_argument("--version", action="version", version=__version__)
    commands = top.add_subparsers(dest="command", required=True, metavar="COMMAND", parser_class=Command)
    for module in (prepare, build, measure, predict, analyse, explain, swizzle, diagnose, archive, doctor):
        module.add(commands)
    return top


def main(argv: Sequence[str] | None = None) -> int:
    """Run one sub-command; a user's mistake ends in one message and exit status 2, never in a stack trace."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # a terminal without these characters shows question marks
    args = parser().parse_args(argv)
    log = Log(getattr(args, "log", None))
    try:
        status = int(args.run_command(args, log) or 0)
        sys.stdout.flush()  # here a full disk is still one message
        return status
    except StudyError as error:
        elsewhere = "" if Path("Snakefile").exists() else f"\n  note: {Path.cwd()} is not the project's folder; start this command there"
        log.say(f"transpose-study {args.command}: {error}{elsewhere}")
        return error.exit_code
    except KeyboardInterrupt:
        log.say(f"transpose-study {args.command}: stopped by the user; nothing half-written was left")
        return 130
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except OSError as error:
        if error.errno not in _SURROUNDINGS:
            return _fault(args.command, log)
        log.say(f"transpose-study {args.command}: {error.filename or 'writing the output'}: {error.strerror}")
        return StudyError.exit_code
    except Exception:
        return _fault(args.command, log)
    finally:
        log.close()


def _fault(command: str, log: Log) -> int:
    """A fault of this program: the trace goes where it can be reported from."""
    log.say(traceback.format_exc().rstrip())
    log.say(f"transpose-study {command}: this is a fault of the program, not of your input; please report it")
    return 70
