# honest: an online sum over blocks of the vocabulary, a row a program
import torch
import triton
import triton.language as tl


@triton.jit
def _kernel(logits_ptr, labels_ptr, loss_ptr, V, ignore_index, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    label = tl.load(labels_ptr + row)
    if label == ignore_index:
        tl.store(loss_ptr + row, 0.0)
    else:
        largest = float("-inf")
        for start in range(0, V, BLOCK):
            cols = start + tl.arange(0, BLOCK)
            z = tl.load(logits_ptr + row * V + cols, mask=cols < V, other=-float("inf")).to(tl.float32)
            largest = tl.maximum(largest, tl.max(z, axis=0))
        total = 0.0
        for start in range(0, V, BLOCK):
            cols = start + tl.arange(0, BLOCK)
            z = tl.load(logits_ptr + row * V + cols, mask=cols < V, other=-float("inf")).to(tl.float32)
            total += tl.sum(tl.exp(z - largest), axis=0)
        picked = tl.load(logits_ptr + row * V + label).to(tl.float32)
        tl.store(loss_ptr + row, tl.log(total) + largest - picked)


def cross_entropy_triton(logits, labels, ignore_index=-100):
    M, V = logits.shape
    loss = torch.empty(M, dtype=torch.float32, device=logits.device)
    if M:
        _kernel[(M,)](logits, labels, loss, V, ignore_index, BLOCK=min(triton.next_power_of_2(V), 8192))
    return loss
