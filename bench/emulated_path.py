"""A client and a server in two network namespaces, joined by an emulated long path."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from bench.processes import BenchError
from mininet_topos.emulator.pair import LEFT, RIGHT, Host, joined
from mininet_topos.errors import LabError
from mininet_topos.links import LinkSpec, PacketLoss, Queue, Way

CLIENT, SERVER = LEFT, RIGHT


@dataclass(frozen=True)
class Link:
    """The two ends."""

    client: Host
    server: Host


@contextmanager
def long_link(
    delay_s: float,
    *,
    rate_bps: float | None = None,
    queue_bytes: int | None = None,
    loss: float = 0.0,
    delayed_acks: bool = False,
    seed: int = 1,
) -> Iterator[Link]:
    """Join two new namespaces by a link of `delay_s` one way; rate, queue, loss towards the server.

    The server acknowledges every segment, or every second one (`delayed_acks`).
    """
    there = Way(
        delay_s=delay_s,
        rate_bps=rate_bps,
        queue=Queue(bytes=queue_bytes),
        loss=PacketLoss(probability=loss) if loss else None,
    )
    back = Way(delay_s=delay_s, delayed_acks=delayed_acks)
    with path(there, back, acknowledge_all=True, seed=seed) as link:
        yield link


@contextmanager
def path(
    to_server: Way,
    to_client: Way,
    *,
    acknowledge_all: bool = False,
    capture: Path | None = None,
    seed: int = 1,
) -> Iterator[Link]:
    """Join two new namespaces; each way has its own rate, queue and loss.

    acknowledge_all: receivers acknowledge every segment, whatever their socket is told; capture:
    file for what passes (bench.wire), complete once the path is closed; seed: of the losses.
    Raises BenchError.
    """
    spec = LinkSpec(name="long path", forward=to_server, backward=to_client, seed=seed)
    try:
        with joined(spec, acknowledge_all=acknowledge_all, capture=capture) as pair:
            yield Link(pair.left, pair.right)
    except LabError as error:
        raise BenchError(str(error)) from error
