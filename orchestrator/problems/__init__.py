"""Problem files as op folders: a Model with example inputs becomes op.yaml and reference.py.

What a problem is: one Python file that stands alone and defines `Model`, a torch.nn.Module; `get_inputs()`, a list of
the tensors that forward takes, made with torch.rand, randn, randint and the like; and `get_init_inputs()`, what Model
is constructed with. Sizes are whole numbers bound to names at the top of the file, or the items of such a tuple: those
are what can be varied. KernelBench's problems have this form.

`source` rewrites the text, `facts` is what is found out about it, `folder` what an op's files say, `taken` where they
go. A process of the judge's executes the file (`judge.problem`), and `examine` asks it. Parameters of the model become
inputs of the op.
"""
