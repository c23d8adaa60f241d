"""Faults that only a gather can have; the general ones are made by the judge."""

import torch
from ref import embedding_ref


def index_read_as_int32(table, index):
    """An int64 index is read as int32: every other one is the upper half of the one before."""
    return embedding_ref(table, index.view(torch.int32)[: len(index)].to(torch.int64))


def index_as_position(table, index):
    """The rows in order, and the index not looked at."""
    return embedding_ref(table, torch.arange(len(index), device=index.device) % len(table))


def one_based(table, index):
    """The index is taken to count from 1."""
    return embedding_ref(table, (index - 1).clamp(min=0))


def index_as_int16(table, index):
    """The index passes through 16 bits: rows beyond 65536 are others."""
    return embedding_ref(table, index & 0xFFFF)


def row_stride_of_a_power_of_two(table, index):
    """The table is taken to have rows of the next power of two."""
    width = 1 << (table.shape[1] - 1).bit_length()
    places = index.unsqueeze(1) * width + torch.arange(table.shape[1], device=table.device)
    return table.view(-1)[places % table.numel()]


def row_0_as_padding(table, index):
    """Index 0 gives zeros, as a padding index would."""
    return embedding_ref(table, index).masked_fill((index == 0).unsqueeze(1), 0)


def repeated_rows_once(table, index):
    """An index that occurred before is not written again."""
    y = embedding_ref(table, index)
    for at, one in enumerate(index.tolist()):
        if one in index[:at].tolist():
            y[at] = 0
    return y


def columns_beyond_65536(table, index):
    """One block of at most 65536 columns and no loop: what lies beyond is not written."""
    y = embedding_ref(table, index)
    y[:, 65536:] = 0
    return y
