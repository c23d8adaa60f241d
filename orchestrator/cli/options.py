"""What several commands share: options of one wording, and the settings and ops that they name."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from orchestrator.config import Settings
    from orchestrator.ops import Op

Device = Annotated[
    str | None,
    typer.Option(metavar="WHERE", help="Where to judge: auto, gpu or cpu (Triton's interpreter). [default: auto]"),
]
Quick = Annotated[
    bool | None,
    typer.Option("--quick/--full", help="The quick subset, or all cases. [default: quick without a GPU]"),
]
Seed = Annotated[int | None, typer.Option(metavar="N", help="Repeat a verdict's values. [default: fresh]")]
RequireSandbox = Annotated[
    bool, typer.Option("--require-sandbox", help="Refuse to run where a piece of the confinement is missing.")
]
RequireIdle = Annotated[
    bool, typer.Option("--require-idle", help="Refuse to measure where another process uses the GPU.")
]
Workspaces = Annotated[
    Path,
    typer.Option(metavar="DIR", show_default=False, help="Where repositories and runs are kept. [default: workspaces]"),
]
WORKSPACES = Path("workspaces")
RunId = Annotated[str, typer.Argument(metavar="RUN", help="The run's id, as its folder is called.")]
Json = Annotated[bool, typer.Option("--json", help="Print the run's record as JSON; progress goes to stderr.")]
Config = Annotated[Path | None, typer.Option(metavar="FILE", help="A YAML file of settings over the defaults.")]
Agent = Annotated[
    str | None,
    typer.Option(metavar="NAME", help="Who writes: auto, anthropic, openai, command, inbox, recorded. [default: auto]"),
]
Override = Annotated[
    list[str] | None, typer.Option("-c", metavar="KEY=VALUE", help="One setting, such as loop.rounds=2.")
]


def judge(
    device: str | None, quick: bool | None = None, seed: int | None = None, require_sandbox: bool = False
) -> dict[str, dict[str, Any]]:
    """What the command line says of the judge, as settings."""
    return {"judge": {"device": device, "quick": quick, "seed": seed, "require_sandbox": require_sandbox or None}}


def strictness(require_idle: bool, require_sandbox: bool) -> dict[str, dict[str, Any]]:
    """What a measurement refuses to go without, as settings."""
    return {"measure": {"require_idle": require_idle or None}, "judge": {"require_sandbox": require_sandbox or None}}


def settings(
    config: Path | None,
    override: list[str] | None,
    given: dict[str, dict[str, Any]],
    own: dict[str, Any] | None = None,
) -> Settings:
    """The settings of a command; `own` are those of one op of a batch, which outrank the rest."""
    from orchestrator import config as configuration

    flags = {
        section: {key: value for key, value in values.items() if value is not None} for section, values in given.items()
    }
    return configuration.load(config, tuple(override or ()), configuration.merged([flags, own or {}]))


def ops_root() -> Path:
    """The folder of the ops that are shipped."""
    from orchestrator import resources

    return resources.shipped("configs") / "ops"


def op(name: str) -> Op:
    """The op of this name.

    Raises:
        ConfigurationError: there is none, or its folder is wrong.
    """
    from orchestrator import ops

    return ops.load(name, ops_root())
