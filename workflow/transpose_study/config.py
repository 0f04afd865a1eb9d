"""The experiment's configuration as one typed, strict model; ``config/schema.json`` is generated from it.

``python -m transpose_study.config > config/schema.json`` writes the schema anew.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError, field_validator

from transpose_study.errors import StudyError, nearest
from transpose_study.records import read_yaml

CacheMode = Literal["hot", "cold"]
Item = TypeVar("Item")


def _different(items: list[Item]) -> list[Item]:
    twice = [i for n, i in enumerate(items) if i in items[:n]]
    if twice:
        raise ValueError(f"{twice[0]} is listed twice")
    return items


Different = Annotated[list[Item], AfterValidator(_different), Field(json_schema_extra={"uniqueItems": True})]
NAME = r"^\w[\w.-]*$"  # of a file or folder, so that it leads nowhere else

RESERVED = ("archive", "compare", "diagnose", "rerun")  # folders of results/ that hold no run


class Strict(BaseModel):
    """A model that refuses unknown keys."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class Group(BaseModel):
    """One group of cells: a value for each group axis of the study, and what is special about it."""

    model_config = ConfigDict(extra="allow", frozen=True)
    __pydantic_extra__: dict[str, int | str] = Field(init=False)
    variants: Different[str] | None = Field(None, min_length=1, description="only these variants at this shape; default: all that are configured")
    launches: dict[str, int] = Field(default_factory=dict, description="ncu launches by metric batch, over profile.launches")

    @property
    def values(self) -> dict[str, int | str]:
        """The group's axis values."""
        return dict(self.__pydantic_extra__ or {})


class Input(Strict):
    """What the input matrix holds."""

    init: Literal["random", "zeros"] = Field("random", description="random mirrors real data; zeros mirrors the study")
    seed: int = Field(5060, ge=0, lt=2**32)


class Timing(Strict):
    """The protocol of the timings."""

    cache_modes: Different[CacheMode] = Field(["hot", "cold"], min_length=1)
    processes: int = Field(3, ge=1, description="fresh processes over which the rounds are spread, at least")
    min_samples: int = Field(30, ge=1, description="samples of every cell and cache mode, at least")
    interval: float = Field(0.01, gt=0, description="width the 95 % interval of every median should reach, as a share")
    budget_s: float = Field(20, gt=0, description="seconds of sampling for one shape, after which the rounds end")
    window_us: float = Field(400, gt=0, description="length a hot sample's back-to-back launches should fill")
    max_launches: int = Field(200, ge=1, le=500, description="launches of one hot sample, at most (the queue holds 1,024)")
    warmup_tolerance: float = Field(0.01, gt=0, description="share by which successive warm-up medians may differ")
    warmup_budget_s: float = Field(1.5, ge=0, description="seconds of warm-up for one process, at most")
    flush_l2: float = Field(1.0, ge=1, description="bytes written before a cold sample, as a multiple of the L2's size")


class Profile(Strict):
    """What Nsight Compute reads."""

    enabled: bool = True
    batches: Different[str] | None = Field(None, description="metric batches to read; default: all of config/metrics.yaml")
    launches: dict[str, int] = Field(
        default_factory=lambda: {"counters": 3, "duration": 3, "source": 1}, description="launches of each cell by batch"
    )
    timeout_s: float = Field(900, gt=0, description="seconds after which one ncu process is given up")


class Build(Strict):
    """How kernels are compiled."""

    toolchain: Literal["auto", "pip", "path"] = Field("auto", description="the pinned pip packages, or nvcc on PATH")
    architecture: str | None = Field(None, pattern=r"^\d{2,3}[af]?$", description="compute capability such as 90; default: the device's")
    flags: list[str] = Field(default_factory=list, description="further flags for nvcc")


class Report(Strict):
    """What is drawn and written."""

    formats: Different[Literal["html", "pdf", "md", "ipynb"]] = Field(["html", "pdf", "md", "ipynb"], min_length=1)
    group: str | None = Field(None, description="the shape the write-up argues about; default: the published study's, else the first")
    published: str | None = Field("rtx5060-laptop", pattern=NAME, description="published figures in config/reference/ shown beside this device's")
    peak_gb_s: float | None = Field(None, gt=0, description="nominal memory bandwidth; default: memory clock x bus width x 2")


class Paper(Strict):
    """The write-up."""

    language: Different[Literal["en", "zh"]] = Field(
        ["en", "zh"], min_length=1, description="editions of the write-up, made from the same figures; the notebook is in English only"
    )


class Config(Strict):
    """The whole experiment."""

    study: str = Field("transpose", pattern=NAME, description="folder of kernels/ that holds the registry")
    run: str | None = Field(None, pattern=NAME, max_length=100, description="results folder; default: the device's name")
    device: str | int = Field("auto", description="auto, a CUDA index, a GPU UUID, archive, or archive:PATH")
    replay: str | None = Field(None, description="archive rebuilt where no NVIDIA device exists")
    compare: list[str] | None = Field(None, description="what the target compare sets side by side: archives, results folders, published studies")
    also: Different[str] = Field(default_factory=list, description="configuration files of further studies that `all` runs as well")
    shapes: list[Group] = Field(min_length=1, description="one timing job and one ncu job each")
    axes: dict[str, list[int]] = Field(default_factory=dict, description="values of the axes that the variants take")
    variants: Annotated[Different[str], Field(min_length=1)] | Literal["all"] = "all"
    input: Input = Input()
    timing: Timing = Timing()
    profile: Profile = Profile()
    build: Build = Build()
    report: Report = Report()
    paper: Paper = Paper()

    @field_validator("run")
    @classmethod
    def _own_folder(cls, name: str | None) -> str | None:
        if name in RESERVED:
            raise ValueError(f"results/{name} is kept for other things; choose another name")
        return name

    def measured_shapes(self) -> list[Group]:
        """The shapes without those of which ``variants`` leaves none."""
        chosen = None if self.variants == "all" else set(self.variants)
        return [g for g in self.shapes if g.variants is None or chosen is None or chosen & set(g.variants)]


def check_files(paths: Iterable[Path | str]) -> None:
    """Raise :class:`StudyError` with the line for files that are no mapping or give a key twice, which Snakemake lets pass."""
    for path in dict.fromkeys(map(str, paths)):
        if Path(path).exists() and not isinstance(read_yaml(Path(path)), dict):
            raise StudyError("holds no keys", where=path)


def study_of(path: Path | str) -> str:
    """The study that a configuration file is about."""
    data = read_yaml(Path(path)) if Path(path).exists() else None
    return str((data if isinstance(data, dict) else {}).get("study", Config.model_fields["study"].default))


def parse(data: Mapping[str, Any], *, where: str = "configuration") -> Config:
    """Validate ``data``; every mistake is named with its key, and a misspelt key with the nearest known one."""
    try:
        read = Config.model_validate(dict(data))
        # A value equal to its default becomes the default (900.0 becomes 900), so that a resolved configuration that is read again
        # gives the very settings that a run was measured with.
        return Config.model_validate(read.model_dump(exclude_defaults=True))
    except ValidationError as error:
        lines = [_describe(e) for e in error.errors()]
        hint = "config/schema.json lists every key with its meaning"
        raise StudyError("; ".join(lines), where=where, hint=hint) from None


def _describe(error: Mapping[str, Any]) -> str:
    key = ".".join(str(p) for p in error["loc"] if str(p).isidentifier() or isinstance(p, int))  # the names of pydantic's unions left out
    if error["type"] == "extra_forbidden":
        model: type[BaseModel] = Config
        for part in error["loc"][:-1]:
            annotation = model.model_fields[str(part)].annotation if str(part) in model.model_fields else None
            if isinstance(annotation, type) and issubclass(annotation, BaseModel):
                model = annotation
        return f"unknown key {key!r}, {nearest(str(error['loc'][-1]), model.model_fields)}"
    if error["type"] == "value_error":
        return f"{key}: {error['ctx']['error']}"
    return f"{key}: {error['msg'].lower()} (got {error['input']!r})"


def schema() -> str:
    """The JSON schema of the configuration, as ``config/schema.json`` holds it."""
    return json.dumps(Config.model_json_schema(), indent=2, sort_keys=True, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    print(schema(), end="")
