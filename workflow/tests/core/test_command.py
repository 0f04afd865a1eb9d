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


def commands() -> dict[str, argparse.ArgumentParser]:
    """Every sub-command's parser."""
    (found,) = [a for a in parser()._actions if isinstance(a, argparse._SubParsersAction)]
    return dict(found.choices)


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
