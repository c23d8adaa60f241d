"""The errors of our own machinery, one small family.

What a *candidate* does wrong is data (a `records.Status`), never one of these. The tree:

    OrchestratorError            one line for the person, an exit code
    ├── UsageError        (2)    what was given, what is allowed, what to do
    │   └── AgentUnusable        no op could be answered: a wrong key, an unknown model
    ├── BudgetSpent       (1)    a limit that the person set forbids the next call
    └── Infrastructure    (3)    something of ours failed; says what to do about it
        ├── AgentError           a model or its provider did not answer
        ├── WorkspaceError       git or the file system refused
        └── JudgeError           the judge died, spoke out of turn, or lacks what was required
            └── JudgeLost        the machine that it ran on is gone; another one may judge the same job

Imports nothing of ours.
"""

from __future__ import annotations


class OrchestratorError(Exception):
    """Base of all errors that a person sees as one line."""

    exit_code = 3


class UsageError(OrchestratorError):
    """The command line, a configuration file or an op folder asks for something that cannot be."""

    exit_code = 2


class AgentUnusable(UsageError):
    """The agent's configuration cannot work, for whatever it is asked."""


class BudgetSpent(OrchestratorError):
    """A limit of rounds, tokens, money or time forbids the next call. What was not done because of it is listed."""

    exit_code = 1


class InfrastructureError(OrchestratorError):
    """Our machinery failed; never counted against a candidate."""


class AgentError(InfrastructureError):
    """A model provider could not be reached, refused, or sent something that is no answer."""


class WorkspaceError(InfrastructureError):
    """Git or the file system refused what a workspace needs."""


class JudgeError(InfrastructureError):
    """The judge could not give a verdict, and the reason is not the candidate's."""


class JudgeLost(JudgeError):
    """The machine on which a judge ran is gone; its job is as it was."""
