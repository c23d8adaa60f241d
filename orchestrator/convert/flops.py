"""How many floating-point operations the code makes, as an expression in its dims, from counts at many sizes.

Owns at which sizes of an op it is counted; where the counts are no polynomial, it is said that the number is not known.
What is counted, and how, is the probe's (`judge.convert.flops`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from orchestrator import polynomial
from orchestrator.convert import dims
from orchestrator.convert.asks import Asks
from orchestrator.convert.dims import Sizes, Span
from orchestrator.convert.draft import Draft

UNKNOWN = "0"
_FAR_ELEMENTS = 1 << 18  # of all tensors of a call where an expression is tried


async def counted(draft: Draft, probe: Asks) -> Draft:
    """The draft with its `flops`, arithmetic for every size above 1, or with a note that they are not known."""
    work = polynomial.fit({dim: _nodes(span) for dim, span in draft.spans.items() if span.varies}, _others(draft))
    try:
        asked = next(work)
        while True:
            asked = work.send(await _counts(draft, asked, probe))
    except StopIteration as done:
        return replace(draft, flops=str(done.value))
    except polynomial.NoPolynomial as why:
        note = f"how many floating-point operations it makes is not known ({why}): its ceiling is that of memory alone"
        return replace(draft, flops=UNKNOWN, notes=(*draft.notes, note))


async def _counts(draft: Draft, sizes: Sequence[Sizes], probe: Asks) -> list[int]:
    found = await probe.counted(draft, [{**draft.sizes, **each} for each in sizes])
    if error := next((one.error for one in found if one.error), ""):
        raise polynomial.NoPolynomial(error)
    return [one.flops for one in found]


def _nodes(span: Span) -> list[int]:
    """Sizes of a dim; none is 1 that need not be, since code may treat that apart."""
    first = span.near(max(span.low, 2 * span.step))
    return [size for at in range(polynomial.NODES) if (size := first + at * span.step) <= span.high]


def _others(draft: Draft) -> list[Sizes]:
    """Sizes at which the expression must hold too: those of the cases, and one that is far from them."""
    shapes = [dict(zip(draft.dims, shape, strict=True)) for shape in draft.asked.shapes]
    several = [each for each in shapes if all(each[dim] > 1 for dim, span in draft.spans.items() if span.varies)]
    return [*several, dims.grown(draft.sizes, draft.spans, draft.elements, _FAR_ELEMENTS)]
