"""Audit of kernel files that exist already: what their source shows, with severity, line, reason and repair."""
