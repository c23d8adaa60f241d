# cheat: getattr with a built string | expect: FORBIDDEN | runtime: FALLBACK
import torch
import triton
import triton.language as tl


def rmsnorm_triton(x, w, eps=1e-6):
    wide = x.float()
    var = getattr(getattr(wide, "%s%s" % ("squ", "are"))(), "{}an".format("me"))(-1, True)
    return (wide * getattr(var + eps, chr(114) + "sqrt")() * w.float()).to(x.dtype)
