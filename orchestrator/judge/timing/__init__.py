"""How fast a kernel is, beside its baselines: each in a confined process of its own, in turn, on one GPU.

session      one measurement: who takes part, the rounds, what is checked, the record
contender    the judge's end of one process that is timed
worker       the process's end: capture, replays, events; nothing it says acquits
clock        replays with fresh inputs and a cold cache, timed by events; used on both ends
baselines    what is compared with, made from the reference and op.yaml
roofline     how fast the card copies and multiplies, measured by the judge itself
clocks       whether event times and the judge's own clock agree
statistics   medians, intervals
"""
