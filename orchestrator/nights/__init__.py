"""A night: every champion judged again, new kernels where it pays, a report, and what it says against the last one."""
