"""A person's code, run to see what it does: how it is called, what it returns, which sizes it takes.

`probe` is a process of its own, which `convert` starts without keys and with a time limit. It runs code that the person
named, as the person would: nothing here is confined, and nothing here judges a kernel. `tracer` runs in a script of
the person's, with whatever Python that uses, and so imports nothing of ours.
"""
