"""The one place before a call that spends: is the reply here already, is there budget left; and after it, what it cost.

Owns what has been spent and the comparison with the person's limits. Wraps an agent and is one, so that the loop knows
nothing of it. Calls under way when a limit is reached are not cut short: with many ops at once, tokens and money can
pass their limit by what those calls cost; rounds cannot.
"""

from __future__ import annotations

import time
from collections.abc import Sequence

from orchestrator import kept, verifying
from orchestrator.agents import Agent, Request, Wordless
from orchestrator.agents.given import Given
from orchestrator.agents.recorded import RepliesExhausted
from orchestrator.config import Budget
from orchestrator.errors import AgentUnusable, BudgetSpent, UsageError
from orchestrator.ops import Op
from orchestrator.records import Reply, Usage
from orchestrator.tree import KERNEL_BYTES


class Purse:
    """What one op, or one batch, may spend, and what it has spent."""

    def __init__(self, whose: str, limits: Budget) -> None:
        self.rounds = 0
        self.tokens = 0
        self.usd = 0.0
        self._whose = whose  # "op" or "batch": the setting's name
        self._limits = limits
        self._untold: set[str] = set()  # what a reply did not say of itself
        self._begun = time.monotonic()

    def check(self) -> None:
        """Raises BudgetSpent where a limit is reached, or cannot be kept because replies do not say what they cost."""
        spent = {
            "rounds": self.rounds,
            "tokens": self.tokens,
            "usd": self.usd,
            "wall_s": time.monotonic() - self._begun,
        }
        for name, value in spent.items():
            limit = getattr(self._limits, name)
            if limit is not None and name in self._untold:
                raise BudgetSpent(f"budget.{self._whose}.{name} cannot be kept: the agent does not say what it spends")
            if limit is not None and value >= limit:
                raise BudgetSpent(f"budget.{self._whose}.{name} of {limit:g} is spent ({round(value, 4):g})")

    def count(self, usage: Usage) -> None:
        """What a reply cost; one that was recorded long ago cost nothing now."""
        if not usage.requests:
            return
        counts = (usage.input_tokens, usage.output_tokens)
        self.tokens += sum(count or 0 for count in counts)
        self.usd += usage.cost_usd or 0.0
        self._untold |= {"tokens"} if None in counts else set()
        self._untold |= {"usd"} if usage.cost_usd is None else set()


def begins_with(given: str | None, agent: Agent, op: Op) -> Agent:
    """The agent, preceded by a person's kernel file where one is given; that is asked of nobody and costs nothing.

    Raises UsageError for what is no file that can be read as text.
    """
    if given is None:
        return agent
    (file,) = verifying.read([given])
    if file.sha256 is None:
        raise UsageError(f"{file.name} is larger than the {KERNEL_BYTES} bytes of a kernel file")
    try:
        return Given(agent, file.data.decode(), op.spec.kernel_name)
    except UnicodeDecodeError:
        raise UsageError(f"{file.name} is not UTF-8 text; give a kernel file") from None


class Asking:
    """An agent that is asked only for what is not kept, and only while there is budget."""

    def __init__(self, agent: Agent, purses: Sequence[Purse]) -> None:
        self.name = agent.name
        self._agent = agent
        self._purses = purses

    async def propose(self, request: Request) -> Reply:
        """Answer the request; see `orchestrator.agents.Agent`. Raises BudgetSpent, and AgentUnusable for a
        configuration that cannot work.
        """
        if kept.has_reply(request.folder):
            reply = kept.reply(request.folder)
            self._add_round(1)
        else:
            for purse in self._purses:
                purse.check()
            reply = await self._ask(request)
        self._count(reply.usage)
        return reply

    async def _ask(self, request: Request) -> Reply:
        answered = False
        self._add_round(1)  # before the answer is here: others may ask meanwhile
        try:
            reply = await self._agent.propose(request)
            answered = True
        except RepliesExhausted:
            raise
        except Wordless as error:
            self._count(error.reply.usage)
            raise
        except UsageError as error:
            raise AgentUnusable(str(error)) from error
        finally:
            if not answered:
                self._add_round(-1)
        return reply

    def _count(self, usage: Usage) -> None:
        for purse in self._purses:
            purse.count(usage)

    def _add_round(self, count: int) -> None:
        for purse in self._purses:
            purse.rounds += count
