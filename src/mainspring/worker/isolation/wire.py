"""What a worker and the child of one run say to each other: JSON in frames with their length in front.

The worker believes nothing: a frame has a largest size, and what is not one of the messages below ends the child.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from uuid import UUID  # noqa: TC003  msgspec reads the annotations

import msgspec

from mainspring.errors import BadFrame
from mainspring.model.actor import Tenant  # noqa: TC001  msgspec reads the annotations
from mainspring.model.fan_out import FanOut  # noqa: TC001  msgspec reads the annotations
from mainspring.worker.finishing import Finishing  # noqa: TC001  msgspec reads the annotations

if TYPE_CHECKING:
    from collections.abc import Iterator

LENGTH_BYTES = 4
MAX_FRAME_BYTES = 1024 * 1024  # payloads, results and checkpoints are all much smaller


# What a child asks for besides keeping a checkpoint: its handler begins to wait for another run, or has waited; which
# occurrence before its own succeeded.
LEAVE_SLOT, COME_BACK, PREVIOUS_SUCCESS = "leave-slot", "come-back", "previous-success"
FANS_OUT = "fans-out"  # what a child tells: its handler begins to submit children of its run


class Start(msgspec.Struct, tag="start"):
    """To the child, once: what to run."""

    run_id: UUID
    job: str
    attempt: int
    fence: int
    payload: msgspec.Raw
    memory: int | None = None
    cpu: float | None = None
    finishing: Finishing | None = None
    headers: dict[str, str] | None = None
    checkpointed: Any = None
    fan_out: FanOut | None = None  # None: its handler may submit no children
    tenant: Tenant | None = None  # whose run it is


class Reply(msgspec.Struct, tag="answer"):
    """To the child: what became of what it asked for."""

    number: int
    body: Any = None
    error: str | None = None
    code: str | None = None


class Notice(msgspec.Struct, tag="tell"):
    """From the child: something to know, like progress. Nobody answers."""

    kind: str
    body: Any = None


class Request(msgspec.Struct, tag="ask"):
    """From the child: something to do, like keeping a checkpoint. It waits for the answer."""

    number: int
    kind: str
    body: Any = None


class Done(msgspec.Struct, tag="done"):
    """From the child, at the end: what the handler returned."""

    result: Any = None


class Failed(msgspec.Struct, tag="failed"):
    """From the child, at the end: what the handler raised. `names` are (module, class), the most specific first."""

    names: list[tuple[str, str]]
    message: str
    traceback: str
    code: str | None = None
    is_cancelled: bool = False  # it stopped because it was told to
    is_hopeless: bool = False  # its arguments do not fit, or it returned what cannot be stored
    steering: dict[str, Any] | None = None  # it is not an error, but says what is to become of the run


FromChild = Notice | Request | Done | Failed
ToChild = Start | Reply

_from_child: msgspec.json.Decoder[FromChild] = msgspec.json.Decoder(FromChild)
_to_child: msgspec.json.Decoder[ToChild] = msgspec.json.Decoder(ToChild)


def framed(message: msgspec.Struct) -> bytes:
    body = msgspec.json.encode(message)
    if len(body) > MAX_FRAME_BYTES:
        raise BadFrame(f"A message of {len(body):,} bytes does not fit into a frame of {MAX_FRAME_BYTES:,}.")
    return len(body).to_bytes(LENGTH_BYTES, "big") + body


class Frames:
    """Cuts what arrives into frames, however it was torn apart on the way."""

    def __init__(self) -> None:
        self._buffer = bytearray()

    def feed(self, data: bytes) -> Iterator[bytes]:
        """The bodies of the frames that are complete now."""
        self._buffer += data
        while len(self._buffer) >= LENGTH_BYTES:
            length = int.from_bytes(self._buffer[:LENGTH_BYTES], "big")
            if length > MAX_FRAME_BYTES:
                raise BadFrame(f"A frame of {length:,} bytes was announced; at most {MAX_FRAME_BYTES:,} are allowed.")
            end = LENGTH_BYTES + length
            if len(self._buffer) < end:
                return
            body = bytes(self._buffer[LENGTH_BYTES:end])
            del self._buffer[:end]
            yield body


def from_child(body: bytes) -> FromChild:
    try:
        return _from_child.decode(body)
    except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError) as error:
        raise BadFrame(f"A message is not one of the protocol's: {error}.") from error


def to_child(body: bytes) -> ToChild:
    return _to_child.decode(body)
