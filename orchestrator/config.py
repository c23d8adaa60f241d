"""The settings of a run: defaults from configs/default.yaml, then the person's file, the environment, and -c overrides.

Owns their names, types and precedence. Holds no secrets: API keys are read by the agents that need them. Unknown keys
are errors, with the nearest known name.
"""

from __future__ import annotations

import difflib
import os
import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, Literal

import yaml
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError
from pydantic_settings import BaseSettings, InitSettingsSource, PydanticBaseSettingsSource, SettingsConfigDict

from orchestrator import resources, yamlfile
from orchestrator.agents.choose import AgentOptions
from orchestrator.decide import Thresholds
from orchestrator.errors import UsageError
from orchestrator.nights.due import Reason
from orchestrator.records import Limits

LAUNCH = "launch"  # the stage without a model
OPTIMIZE = "optimize"  # the stage in which all that a round brought is measured


class _Section(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


def _in_order(stages: tuple[str, ...]) -> tuple[str, ...]:
    if not stages or stages[0] != "correct" or len(set(stages)) != len(stages):
        raise ValueError("stages begin with correct, and none comes twice")
    return stages


class LoopSettings(_Section):
    """How long to try."""

    rounds: Annotated[int, Field(ge=1, le=20)] = 3
    samples: Annotated[int, Field(ge=1, le=16)] = 1
    stages: Annotated[tuple[Literal["correct", "launch", "optimize", "tune"], ...], AfterValidator(_in_order)] = (
        "correct",
        "launch",
        "optimize",
        "tune",
    )
    persist: bool = False
    given: str | None = None
    remember: bool = True

    def rounds_of(self, stage: str) -> range:
        """The rounds of a stage. Round 0 asks no model: a person's kernel before the first proposal, a launch sweep."""
        if stage == LAUNCH:
            return range(1)
        return range(0 if self.given is not None and stage == self.stages[0] else 1, self.rounds + 1)

    def samples_of(self, round_: int) -> int:
        """The proposals of a round; where no model is asked there is one."""
        return self.samples if round_ else 1


class AgentSettings(_Section):
    """Who proposes kernels, and how it is asked."""

    name: str = "auto"
    model: str | None = None
    temperature: float | None = None
    max_tokens: Annotated[int, Field(ge=1)] = 32000
    reasoning_effort: str | None = None
    timeout_s: Annotated[float, Field(gt=0)] = 900
    max_tries: Annotated[int, Field(ge=1)] = 6
    prices: Path | None = None
    inbox_timeout_s: float | None = None
    batch_wait_s: Annotated[float, Field(gt=0)] = 21600
    command: Annotated[str | None, Field(min_length=1)] = None
    preset: str | None = None

    @property
    def in_tree(self) -> bool:
        """Whether the agent works in a copy of the tree, in place of answering with words."""
        return self.name == "command"

    def options(self, *, require_sandbox: bool) -> AgentOptions:
        """What the agents' own module takes."""
        own = self.model_dump(exclude={"name", "batch_wait_s"})
        return AgentOptions(**own, require_sandbox=require_sandbox)

    def patient_options(self, *, require_sandbox: bool) -> AgentOptions:
        """The same in a batch, where an op waits until its provider is there again."""
        own = self.options(require_sandbox=require_sandbox)
        return replace(own, max_tries=sys.maxsize, wait_s=self.batch_wait_s)


class JudgeSettings(_Section):
    """Where and how strictly attempts are judged."""

    executor: Literal["local", "ray"] = "local"
    ray_address: str | None = None
    ray_gpu: str | None = None
    device: Literal["auto", "gpu", "cpu"] = "auto"
    quick: bool | None = None
    require_sandbox: bool = False
    seed: Annotated[int | None, Field(ge=0, le=2**63 - 1)] = None  # as torch's generators take them
    skip_checks: tuple[str, ...] = ()
    first_failure: bool = False
    weak_ops: bool = False
    limits: Limits = Limits()


class MeasureSettings(_Section):
    """How a passed kernel is timed."""

    rounds: Annotated[int, Field(ge=4, le=1000)] = 24
    sittings: Annotated[int, Field(ge=1, le=20)] = 4
    total_s: Annotated[float, Field(gt=0)] = 1500
    sweep_s: Annotated[float, Field(gt=0)] = 240
    require_idle: bool = False
    without: tuple[str, ...] = ()
    keep_compiled: bool = False


class DocsSettings(_Section):
    """Where what is known of Triton's language is kept."""

    folder: Path = Path("docs/.triton_docs")
    site: str = "https://triton-lang.org/main"


class Budget(_Section):
    """What may be spent. None: as much as it takes."""

    rounds: Annotated[int | None, Field(ge=1)] = None
    tokens: Annotated[int | None, Field(ge=1)] = None
    usd: Annotated[float | None, Field(gt=0)] = None
    wall_s: Annotated[float | None, Field(gt=0)] = None


class BudgetSettings(_Section):
    """What one op may spend, and what a batch may in all."""

    op: Budget = Budget()
    batch: Budget = Budget()


class NightSettings(_Section):
    """What a night does beyond judging every champion again."""

    generate: tuple[Reason, ...] = tuple(Reason)
    ops: tuple[str, ...] = ()
    concurrency: Annotated[int, Field(ge=1)] = 8
    judges: Annotated[int | None, Field(ge=1)] = None
    keep_days: Annotated[float, Field(gt=0)] = 30
    webhook: Literal["none", "json", "slack"] = "none"


class MlflowSettings(_Section):
    """Whether runs are also logged to MLflow, and under which experiment."""

    log: bool = False
    experiment: Annotated[str, Field(min_length=1)] = "triton-kernels"


class Settings(BaseSettings):
    """One run's settings, resolved."""

    model_config = SettingsConfigDict(
        extra="forbid", frozen=True, env_prefix="ORCHESTRATOR_", env_nested_delimiter="__"
    )

    loop: LoopSettings = LoopSettings()
    agent: AgentSettings = AgentSettings()
    judge: JudgeSettings = JudgeSettings()
    measure: MeasureSettings = MeasureSettings()
    docs: DocsSettings = DocsSettings()
    budget: BudgetSettings = BudgetSettings()
    decision: Thresholds = Thresholds()
    night: NightSettings = NightSettings()
    mlflow: MlflowSettings = MlflowSettings()


def load(file: Path | None = None, overrides: tuple[str, ...] = (), flags: dict[str, Any] | None = None) -> Settings:
    """The resolved settings. `overrides` are "section.key=value" texts; `flags`, a nested mapping, outranks all."""
    given = merged([_override(text) for text in overrides] + ([flags] if flags else []))
    defaults = resources.shipped("configs") / "default.yaml"
    layers = [_read(path) for path in (file, defaults) if path is not None]

    class Resolved(Settings):
        @classmethod
        def settings_customise_sources(
            cls,
            settings_cls: type[BaseSettings],
            init_settings: PydanticBaseSettingsSource,
            env_settings: PydanticBaseSettingsSource,
            dotenv_settings: PydanticBaseSettingsSource,
            file_secret_settings: PydanticBaseSettingsSource,
        ) -> tuple[PydanticBaseSettingsSource, ...]:
            return (init_settings, env_settings, *(InitSettingsSource(settings_cls, layer) for layer in layers))

    _refuse_unknown_variables()
    try:
        return Resolved(**given)
    except ValidationError as error:
        raise UsageError(_explained(error)) from error


def _refuse_unknown_variables() -> None:
    """Of a section that there is, pydantic refuses unknown keys; variables of another it does not look at."""
    prefix, between = "orchestrator_", "__"
    for variable in os.environ:
        where = variable.lower().removeprefix(prefix).split(between)
        ours = variable.lower().startswith(prefix) and len(where) > 1
        if ours and where[0] not in Settings.model_fields:
            raise UsageError(f"environment variable {variable}: {_unknown('.'.join(where))}")


def dump(settings: Settings) -> str:
    """The resolved settings as YAML, for a run's record."""
    return yaml.safe_dump(settings.model_dump(mode="json"), sort_keys=False)


def kept(file: Path) -> Settings:
    """The settings that `dump` wrote: all of them, so that nothing of today outranks them."""
    try:
        return Settings(**_read(file))
    except ValidationError as error:
        raise UsageError(f"{file} is of another version of this program: {_explained(error)}") from error


def _override(text: str) -> dict[str, Any]:
    key, equals, value = text.partition("=")
    if not equals or not key:
        raise UsageError(f"-c {text!r}: expected section.key=value, such as loop.rounds=2")
    try:
        parsed = yaml.safe_load(value)
    except yaml.YAMLError as error:
        raise UsageError(f"-c {text!r}: the value is not YAML: {' '.join(str(error).split())}") from error
    for part in reversed(key.strip().split(".")):
        parsed = {part: parsed}
    return dict(parsed)


def merged(layers: list[dict[str, Any]]) -> dict[str, Any]:
    """Nested mappings laid over each other, the later ones on top."""
    result: dict[str, Any] = {}
    for layer in layers:
        for key, value in layer.items():
            both = isinstance(value, dict) and isinstance(result.get(key), dict)
            result[key] = merged([result[key], value]) if both else value
    return result


def _read(file: Path) -> dict[str, Any]:
    content = yamlfile.read(file, f"settings file {file}")
    if not isinstance(content, dict):
        raise UsageError(
            f"settings file {file} holds no mapping of sections, such as 'loop:' with 'rounds: 2' below it"
        )
    return content


def _explained(error: ValidationError) -> str:
    """The first problem in one line, with the nearest known key where the key is unknown."""
    first = error.errors()[0]
    where = yamlfile.place(first["loc"])
    if first["type"] not in ("extra_forbidden", "unexpected_keyword_argument"):
        return f"setting {where}: {first['msg']}, got {first['input']!r}"
    return _unknown(where)


def _unknown(where: str) -> str:
    known = _known_keys(Settings.model_fields)
    close = difflib.get_close_matches(where, known, n=1, cutoff=0.5)
    hint = f"; did you mean {close[0]}?" if close else f"; known are {', '.join(known)}"
    return f"setting {where} is unknown{hint}"


def _known_keys(fields: Mapping[str, Any], prefix: str = "") -> list[str]:
    """The dotted names of all settings; `fields` are those of a model or of a dataclass."""
    keys: list[str] = []
    for name, field in fields.items():
        kind = getattr(field, "annotation", None)
        inner = getattr(kind, "model_fields", None) or getattr(kind, "__dataclass_fields__", None)
        keys += _known_keys(inner, f"{prefix}{name}.") if inner else [prefix + name]
    return keys
