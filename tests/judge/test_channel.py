"""The channel between judge and candidate, over real sockets."""

from __future__ import annotations

import os
import resource
import socket
from collections.abc import Iterator

import pytest

from orchestrator.judge import channel


@pytest.fixture
def beyond_1024() -> Iterator[tuple[socket.socket, socket.socket]]:
    """A pair of sockets whose first has a high descriptor, as in a process that holds many files."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard < 2048:
        pytest.skip(f"no more than {hard} descriptors are allowed here")
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, 2048), hard))
    low, theirs = socket.socketpair()
    high = os.dup2(low.fileno(), 1500)
    low.close()
    with socket.socket(fileno=high) as ours, theirs:
        yield ours, theirs
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_descriptors_of_any_number_are_waited_for(beyond_1024: tuple[socket.socket, socket.socket]) -> None:
    ours, theirs = beyond_1024
    assert ours.fileno() == 1500 and not channel.pending(ours)
    with pytest.raises(channel.ChannelTimeout):
        channel.receive(ours, 0.01)
    channel.send(theirs, {"id": 1})
    assert channel.pending(ours) and channel.receive(ours, 5) == {"id": 1}
    theirs.close()
    with pytest.raises(channel.ChannelClosed):
        channel.receive(ours, 5)
