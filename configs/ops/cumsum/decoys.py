"""Faults that only a scan can have; the general ones are made by the judge."""

import torch
from ref import cumsum_ref


def _blocks(x, width):
    return x.to(torch.promote_types(x.dtype, torch.float32)).split(width, -1)


def exclusive(x):
    """The element itself does not count."""
    wide = x.to(torch.promote_types(x.dtype, torch.float32))
    return torch.cat([torch.zeros_like(wide[:, :1]), wide[:, :-1].cumsum(-1)], -1).to(x.dtype)


def from_the_end(x):
    """The sum runs from the last element."""
    return cumsum_ref(x.flip(-1)).flip(-1).contiguous()


def along_the_rows(x):
    """The other axis."""
    return cumsum_ref(x.transpose(0, 1)).transpose(0, 1).contiguous()


def carried_on_into_the_next_row(x):
    """What is carried is not set to 0 where a row begins."""
    return cumsum_ref(x.reshape(1, -1)).view(x.shape)


def nothing_carried(x):
    """Each block of 64 begins at 0."""
    return torch.cat([block.cumsum(-1) for block in _blocks(x, 64)], -1).to(x.dtype).contiguous()


def one_block_carried(x):
    """Only the sum of the block before is carried, not of all before it: right for two blocks of 4096."""
    blocks = _blocks(x, 4096)
    before = [torch.zeros_like(blocks[0][:, :1]), *(block.sum(-1, keepdim=True) for block in blocks[:-1])]
    return torch.cat([block.cumsum(-1) + one for block, one in zip(blocks, before)], -1).to(x.dtype).contiguous()


def carried_in_half_precision(x):
    """What is carried from block to block has the dtype of the result."""
    carried, done = 0, []
    for block in _blocks(x, 64):
        done.append(block.cumsum(-1) + carried)
        carried = done[-1][:, -1:].to(torch.float16).to(block.dtype)
    return torch.cat(done, -1).to(x.dtype).contiguous()


def nan_everywhere(x):
    """A scan by multiplying with a matrix of zeros and ones: 0 · NaN is NaN before the NaN too."""
    wide = x.to(torch.promote_types(x.dtype, torch.float32))
    spoilt = ~wide.isfinite().all(-1, keepdim=True)
    return cumsum_ref(x).masked_fill(spoilt, float("nan"))


def columns_beyond_65536(x):
    """One block of at most 65536 columns and no loop: what lies beyond is not written."""
    y = cumsum_ref(x)
    y[:, 65536:] = 0
    return y
