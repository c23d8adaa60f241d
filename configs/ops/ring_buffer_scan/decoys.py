"""Faults that only a recurrence can have; the general ones are made by the judge."""

import torch
from ref import ring_buffer_scan_ref


def _wide(x):
    return x.to(torch.promote_types(x.dtype, torch.float32))


def _run(x, w, after=torch.Tensor.clone, taps=None):
    """The recurrence with `after` applied to what is fed back, and the taps of each step from `taps`."""
    state, results = _wide(x).new_zeros(x.shape[0], len(w)), []
    for t, step in enumerate(_wide(x).unbind(1)):
        results.append(step + (state * (_wide(w) if taps is None else taps(t))).sum(1))
        state = torch.cat([after(results[-1]).unsqueeze(1), state], 1)[:, : len(w)]
    return torch.stack(results, 1).to(x.dtype)


def taps_turned_round(x, w):
    """The oldest result meets the first tap."""
    return ring_buffer_scan_ref(x, w.flip(0))


def ring_not_turned(x, w):
    """The taps are not turned with the ring's position: right for one tap."""
    wide = _wide(x)
    ring, results = wide.new_zeros(x.shape[0], len(w)), []
    for t, step in enumerate(wide.unbind(1)):
        results.append(step + (ring * _wide(w)).sum(1))
        ring[:, t % len(w)] = results[-1]
    return torch.stack(results, 1).to(x.dtype)


def fed_back_as_rounded(x, w):
    """What is fed back has the dtype of x, as when it is read from y."""
    return _run(x, w, after=lambda y: y.to(x.dtype).to(y.dtype))


def fed_back_in_float16(x, w):
    """The ring is kept in float16."""
    return _run(x, w, after=lambda y: y.to(torch.float16).to(y.dtype))


def inputs_fed_back(x, w):
    """A filter over x, not over its own results."""
    wide = torch.nn.functional.pad(_wide(x), (len(w), 0))
    taps = sum(_wide(w)[k] * wide[:, len(w) - 1 - k : wide.shape[1] - 1 - k] for k in range(len(w)))
    return (_wide(x) + taps).to(x.dtype)


def oldest_tap_left_out(x, w):
    """The ring is one too short."""
    return _run(x, w, taps=lambda t: torch.cat([_wide(w)[:-1], _wide(w)[-1:] * 0]))


def ring_of_16(x, w):
    """A fixed ring of 16."""
    return ring_buffer_scan_ref(x, w[:16])


def ring_of_a_power_of_two(x, w):
    """The ring is read at t - K modulo the next power of two."""
    size = 1 << (len(w) - 1).bit_length()
    return ring_buffer_scan_ref(x, torch.nn.functional.pad(w[1:], (size - len(w), 0)) if size > len(w) else w)


def state_of_the_row_before(x, w):
    """The ring is not emptied where a row begins."""
    return ring_buffer_scan_ref(x.reshape(1, -1), w).view(x.shape)


def steps_beyond_128(x, w):
    """At most 128 steps, and the rest is not written."""
    y = ring_buffer_scan_ref(x, w)
    y[:, 128:] = 0
    return y
