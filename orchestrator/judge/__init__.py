"""The judge: the only package that imports torch and triton. It never imports agents, executors or the loop.

server      the judge's process: one job after another, each ending in a Report
sweep       one job: import, every case, the verdict
compare     one result against the reference, by the test file's own measure
opcheck     whether an op's checker rejects decoys; decoys makes them
proxy       stands where the kernel would be when the committed test file runs
candidate   the judge's end of one confined candidate process: limits, deaths, what each means
worker      the candidate's end; runs beside code that nobody trusts, so nothing it says acquits
channel     bounded JSON between the two
memory      buffers that the judge allocates and both can see
forkserver  forks candidates, watches them, ends them
sandbox     what confines them
"""
