"""Arguments that several sub-commands share."""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from transpose_study.errors import StudyError

if TYPE_CHECKING:
    from transpose_study.registry import Study, Variant

STUDY = "transpose"  # where a command that takes --study is given none
AXIS = "axis "  # before an axis's name among the parsed arguments: no other option can be called so


class Command(argparse.ArgumentParser):
    """A sub-command's parser. ``late`` may add options that depend on the arguments themselves, just before they are parsed."""

    late: Callable[[argparse.ArgumentParser, Sequence[str]], None] | None = None

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        """As argparse's, after ``late``; options of a variant that is another study's end in a message that names the study."""
        if self.late is not None and args is not None:
            late, self.late = self.late, None
            late(self, args)
        parsed, left = super().parse_known_args(args, namespace)
        if left and hasattr(parsed, "study") and hasattr(parsed, "variant"):
            try:
                study = study_named(parsed.study)
                if parsed.variant not in study.variants:
                    for word in (parsed.variant, *left):  # the value of an unknown option may have taken the variant's place
                        _refuse_foreign(study, word)
            except StudyError as error:
                self.error(str(error))
        return parsed, left


def study_named(name: str) -> Study:
    """The study of a folder of ``kernels/``; any other name is a :class:`StudyError` that lists the studies there are."""
    from transpose_study.registry import Study

    known = _studies()
    if name not in known:
        raise StudyError(f"there is no study {name!r} in kernels/; known: {', '.join(known) or 'none'}", where="--study")
    return Study(Path("kernels") / name / "variants.yaml")


def _studies() -> list[str]:
    return sorted(p.parent.name for p in Path("kernels").glob("*/variants.yaml"))


def variant_named(study: Study, name: str) -> Variant:
    """The study's variant of that name; where another study has it, the :class:`StudyError` says which."""
    if name not in study.variants:
        _refuse_foreign(study, name)
    return study.variant(name)


def _refuse_foreign(study: Study, name: str) -> None:
    """Raise :class:`StudyError` where another study of ``kernels/`` has a variant of that name; one that cannot be read has none."""
    for other in _studies():
        try:
            held = other != study.path.parent.name and name in study_named(other).variants
        except StudyError:
            continue
        if held:
            raise StudyError(f"{name} is of the study {other}", where=str(study.path), hint=f"add --study {other}")


def study_asked_for(arguments: Sequence[str]) -> Study | None:
    """The study that ``--study`` names among arguments not yet parsed; None where its registry cannot be read, which the command says later."""
    which = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    which.add_argument("--study", default=STUDY)
    try:
        return study_named(which.parse_known_args(arguments)[0].study)
    except StudyError:
        return None


def add_axis(parser: argparse.ArgumentParser, name: str, meaning: str, **how: Any) -> None:
    """``--AXIS N``, found again under :data:`AXIS` and the axis's name."""
    parser.add_argument("--" + name.replace("_", "-"), dest=AXIS + name, metavar="N", help=meaning, **how)


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


class Settings(dict[str, Any]):
    """Settings that name the key they lack."""

    def __missing__(self, key: str) -> Any:
        raise StudyError(f"lacks the key {key!r}", where="--settings", hint="snakemake -p prints the settings that each step takes")


def settings(args: argparse.Namespace) -> dict[str, Any]:
    """The parsed ``--settings``."""
    return Settings(json_object(args.settings, "--settings"))


def json_object(text: str, option: str) -> dict[str, Any]:
    """The JSON object that was given to an option."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError) as error:  # digits without end and bottomless nesting among them
        raise StudyError(f"is no JSON: {error}", where=option) from None
    if not isinstance(value, dict):
        raise StudyError("is no JSON object", where=option)
    return value
