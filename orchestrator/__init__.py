"""An orchestrator in which a language model writes Triton kernels and a judge decides which of them may stay."""

__version__ = "0.1.0"
