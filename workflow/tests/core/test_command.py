"""The command line with odd arguments, terminals and folders: one message and a status, never a stack trace."""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from projects import ROOT
from transpose_study.cli import main, parser

WITH_SETTINGS = ("check", "time", "profile", "predict", "describe", "build tiled")


def run(*arguments: str, cwd: Path = ROOT, stdout: int | None = subprocess.PIPE, **env: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "transpose_study", *arguments]
    return subprocess.run(
        command, cwd=cwd, env={**os.environ, **env}, stdout=stdout, stderr=subprocess.PIPE, text=True, encoding="utf-8", check=False
    )


@pytest.mark.parametrize("command", WITH_SETTINGS)
@pytest.mark.parametrize(
    ("settings", "words"), [("{}", "lacks the key"), ("{", "is no JSON"), ("[]", "is no JSON object"), ("[" * 9999, "is no JSON")]
)
def test_settings_that_are_none(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path, command: str, settings: str, words: str
) -> None:
    monkeypatch.chdir(ROOT)
    assert main([*command.split(), "--run", str(tmp_path / "run"), "--settings", settings]) == 2
    message = capsys.readouterr().err
    assert f"transpose-study {command.split(maxsplit=1)[0]}: --settings: {words}" in message and "Traceback" not in message
    assert not list(tmp_path.rglob("*.csv")) and not list(tmp_path.rglob("*.json"))


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ("resolve --run {tmp} --config x", "--config: is no JSON"),
        ("explain tiled --shape \u00b2x3", "--shape: '\u00b2x3' is no shape"),  # a digit to str.isdigit, none to int
        ("explain tiled --shape {long}x3", "is no shape"),  # more digits than int() takes
        ("explain tiled --block-rows 0", "--block-rows: block_rows is 0; it must be at least 1"),
        ("explain tiled --block-rows -8", "--block-rows: block_rows is -8; it must be at least 1"),
        ("explain tiled --block-rows 5", "BLOCK_ROWS must divide the tile"),
        ("status --run results", "results: is no results folder: it has no run_config.yaml"),
        ("status --run README.md", "README.md: is no results folder"),
        ("verify README.md", "is damaged or no zip file"),
    ],
)
def test_odd_arguments(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path, arguments: str, words: str) -> None:
    monkeypatch.chdir(ROOT)
    assert main([a.format(tmp=tmp_path, long="9" * 5000) for a in arguments.split()]) == 2
    assert words in capsys.readouterr().err


def commands() -> dict[str, argparse.ArgumentParser]:
    """Every sub-command's parser."""
    (found,) = [a for a in parser()._actions if isinstance(a, argparse._SubParsersAction)]
    return dict(found.choices)


TAKING_A_VARIANT = sorted(n for n, p in commands().items() if {"variant", "study"} <= {a.dest for a in p._actions})


def test_commands_that_take_a_variant_and_a_study() -> None:
    assert TAKING_A_VARIANT == ["diagnose", "explain"]


@pytest.mark.parametrize("command", TAKING_A_VARIANT)
@pytest.mark.parametrize("study", ["blork", "", "../x", ".", "../kernels/micro", "micro/", "transpos"])
def test_a_study_that_is_none_is_refused_with_those_there_are(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], command: str, study: str
) -> None:
    monkeypatch.chdir(ROOT)
    assert main([command, "x", "--study", study]) == 2
    assert f"--study: there is no study {study!r} in kernels/; known: micro, transpose" in capsys.readouterr().err


@pytest.mark.parametrize("command", TAKING_A_VARIANT)
@pytest.mark.parametrize(
    ("arguments", "variant", "other"),
    [
        ("swizzle_xor", "swizzle_xor", "micro"),
        ("bank_column --bytes 4 --pitch 33", "bank_column", "micro"),  # options that the study asked for does not have
        ("--bytes 4 bank_column", "bank_column", "micro"),
        ("tiled --study micro", "tiled", "transpose"),
        ("tiled --study micro --block-rows 8", "tiled", "transpose"),
    ],
)
def test_a_variant_of_another_study_is_said_to_be_its(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], command: str, arguments: str, variant: str, other: str
) -> None:
    monkeypatch.chdir(ROOT)
    try:
        status = main([command, *arguments.split()])
    except SystemExit as end:  # argparse's, for an option that is unknown
        status = end.code
    assert status == 2
    assert f"{variant} is of the study {other}\n  hint: add --study {other}" in capsys.readouterr().err


def test_an_unreadable_study_is_no_other_study(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    (tmp_path / "kernels" / "broken").mkdir(parents=True)
    (tmp_path / "kernels" / "broken" / "variants.yaml").write_text("[")
    (tmp_path / "kernels" / "transpose").symlink_to(ROOT / "kernels" / "transpose")
    monkeypatch.chdir(tmp_path)
    assert main(["explain", "tild"]) == 2
    assert "unknown variant 'tild'; did you mean 'tiled'?" in capsys.readouterr().err


def test_command_in_another_folder_says_where_it_is(tmp_path: Path) -> None:
    done = run("explain", "tiled", cwd=tmp_path)
    assert done.returncode == 2 and f"note: {tmp_path} is not the project's folder" in done.stderr and "Traceback" not in done.stderr


def test_terminal_without_unicode() -> None:
    """LC_ALL=C without Python's coercion; the picture's blocks become question marks."""
    done = run("explain", "tiled", "--shape", "32x32", LC_ALL="C", PYTHONUTF8="0", PYTHONCOERCECLOCALE="0")
    assert done.returncode == 0 and "?" * 32 in done.stdout, done.stderr


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full here")
def test_output_onto_a_full_disk_is_one_message() -> None:
    with Path("/dev/full").open("w", encoding="utf-8") as full:
        done = run("explain", "tiled", "--shape", "32x32", stdout=full.fileno())
    assert done.returncode == 2 and "No space left on device" in done.stderr and "Traceback" not in done.stderr


def test_main_help_lists_every_command() -> None:
    text = parser().format_help()
    assert len(commands()) > 15
    for name in commands():
        assert re.search(rf"^ {{4}}{name}\s+\w", text, re.M), name


@pytest.mark.parametrize("name", commands())
def test_every_command_says_in_one_sentence_what_it_does_and_every_option_what_it_is(name: str) -> None:
    command = commands()[name]
    assert command.description and re.fullmatch(r"[A-Z].*\.", command.description) and len(command.description) < 200
    assert re.search(r"\b(writes?|records|prints|changes|packs)\b", command.description, re.I), "what comes of it"
    assert [a.dest for a in command._actions if not a.help] == []
    assert " ".join(command.description.split()) in " ".join(command.format_help().split())
