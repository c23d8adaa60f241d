# does not parse | expect: COMPILE_ERROR
def rmsnorm_triton(x, w, eps=1e-6)
    return x
