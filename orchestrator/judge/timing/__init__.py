"""How fast a kernel is, beside its baselines: each in a confined process of its own, in turn, on one GPU.

session      one measurement: every shape, what is checked, what convicts, the record
seats        who takes part: their processes and buffers
rounds       at one shape: blocks in turn, and by which clock
sittings     what counts again, by new processes, as one with what was timed before
contender    the judge's end of one process that is timed
worker       the process's end: capture, replays, events; nothing it says acquits
clock        replays with fresh inputs and a cold cache, timed by events; used on both ends
baselines    what is compared with, made from the reference and op.yaml
picks        which of its configurations torch.compile takes
roofline     how fast the card copies and multiplies, measured by the judge itself
clocks       whether event times and the judge's own clock agree
statistics   latencies, intervals
"""
