"""The rules of the audit, by id. A module holds a group of them."""

from orchestrator.audit.rules import hosting, language, masks, numerics, offsets, tuning
from orchestrator.audit.rules.base import ABOUT, RULES

__all__ = ["ABOUT", "RULES", "hosting", "language", "masks", "numerics", "offsets", "tuning"]
