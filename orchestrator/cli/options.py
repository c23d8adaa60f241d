"""What several commands share: options of one wording, and the settings and ops that they name."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from orchestrator.errors import UsageError

if TYPE_CHECKING:
    from orchestrator.catalogue import Catalogue
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
OpsDir = Annotated[
    Path | None,
    typer.Option(metavar="DIR", show_default=False, help="Ops of your own, beside the shipped. [default: ops]"),
]
RunId = Annotated[str, typer.Argument(metavar="RUN", help="The run's id, as its folder is called.")]
Json = Annotated[bool, typer.Option("--json", help="Print the run's record as JSON; progress goes to stderr.")]
Config = Annotated[Path | None, typer.Option(metavar="FILE", help="A YAML file of settings over the defaults.")]
Agent = Annotated[
    str | None,
    typer.Option(metavar="NAME", help="Who writes: auto, anthropic, openai, command, inbox, recorded. [default: auto]"),
]
Model = Annotated[str | None, typer.Option(metavar="NAME", help="The model to ask. [default: the agent's own]")]
Rounds = Annotated[int | None, typer.Option(metavar="N", help="Proposals before it is given up. [default: 3]")]
Samples = Annotated[int | None, typer.Option(metavar="K", help="Proposals asked for at once in a round. [default: 1]")]
Override = Annotated[
    list[str] | None,
    typer.Option("-c", metavar="KEY=VALUE", help="One setting, such as loop.rounds=2; or a file of them."),
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
    """The settings of a command; `own` are those of one op of a batch, which outrank the rest.

    Raises:
        UsageError: a setting cannot be, or there is more than one file of them.
    """
    from orchestrator import config as configuration

    files = [Path(text) for text in override or () if text.endswith((".yaml", ".yml")) and "=" not in text]
    files += [config] if config is not None else []
    if len(files) > 1:
        raise UsageError(f"{' and '.join(map(str, files))}: give one file of settings, and single ones as -c KEY=VALUE")
    single = tuple(text for text in override or () if Path(text) not in files)

    flags = {
        section: {key: value for key, value in values.items() if value is not None} for section, values in given.items()
    }
    return configuration.load(files[0] if files else None, single, configuration.merged([flags, own or {}]))


def catalogue(ops_dir: Path | None) -> Catalogue:
    """The ops there are, shipped and the person's own.

    Raises:
        UsageError: `ops_dir` is no folder.
    """
    from orchestrator import catalogue as catalogues

    return catalogues.opened(ops_dir)


def taken(entry: str, ops_dir: Path | None) -> list[str]:
    """The ops that an entry names: itself, or what the problem files of kernelbench:PATH become.

    Raises:
        UsageError: a file cannot be an op.
    """
    from orchestrator.problems import taken as problems

    return problems.names(entry, ops_dir, lambda line: typer.echo(line, err=True))


def op(name: str, ops_dir: Path | None = None) -> Op:
    """The op of this name, or of kernelbench:FILE.

    Raises:
        UsageError: there is none, or its folder is wrong.
    """
    if ":" in name:
        (name,) = _one(name, taken(name, ops_dir))
    return catalogue(ops_dir).load(name)


def _one(entry: str, names: list[str]) -> list[str]:
    if len(names) != 1:
        raise UsageError(f"{entry} is a folder of {len(names)} problems: --ops takes them, --op takes one file")
    return names
