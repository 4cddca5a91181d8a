"""What a worker does when it cannot have the children it wants."""

from __future__ import annotations

import errno
import os
import socket

import pytest

from mainspring.worker.isolation import zygote
from mainspring.worker.isolation.pool import ChildPool
from mainspring.worker.isolation.zygote import ControlMessage
from mainspring.worker.supervised import ProcessCommand


async def test_a_child_whose_files_found_no_room_here_is_not_taken_for_one() -> None:
    """The kernel hands over as many files as the worker may still open, and says nothing about the others."""
    pool = ChildPool(lambda channel: ProcessCommand(["/bin/true"], {}))
    ours, theirs = os.pipe()
    pool._act_on(ControlMessage(zygote.FORKED, 1), [ours])

    with pytest.raises(OSError) as closed:  # noqa: PT011  its number says which
        os.fstat(ours)
    assert closed.value.errno == errno.EBADF
    assert not pool._idle
    assert not pool._alive
    os.close(theirs)


async def test_a_pool_that_is_closed_has_no_children_to_give() -> None:
    pool = ChildPool(lambda channel: ProcessCommand(["/bin/true"], {}))
    pool.start()
    ours, theirs = socket.socketpair()
    (out, out_end), (err, err_end) = os.pipe(), os.pipe()
    pool._act_on(ControlMessage(zygote.FORKED, 1), [ours.detach(), out, err])
    assert len(pool._idle) == 1

    pool.close()
    assert not pool._idle
    theirs.close()
    for fd in (out_end, err_end):
        os.close(fd)
