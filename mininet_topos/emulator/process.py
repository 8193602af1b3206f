"""The emulator's process: packets between two devices, and answers to whoever started it.

It reads one JSON object per line from standard input and answers each with one on standard output.
The first line tells the link and its ends (`Orders`). It ends when standard input does, so that it
never outlives who started it; its devices vanish with it.
"""

from __future__ import annotations

import ctypes
import gc
import json
import math
import os
import select
import signal
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mininet_topos.emulator.capture import CaptureFile
from mininet_topos.emulator.counters import LinkCounters
from mininet_topos.emulator.courier import Courier
from mininet_topos.emulator.direction import Direction
from mininet_topos.emulator.recorder import Recorder
from mininet_topos.emulator.tun import TunDevice
from mininet_topos.errors import EmulatorError, LabError
from mininet_topos.links import LinkSpec

ROWS_AT_ONCE = 400
"""Of the recorded occupancy: an answer that is made within a third of a millisecond."""

ROUND_S = 0.0003
"""Under load, time from one round of reading and writing to the next. Packets then go in small
batches, which halves the processor's work, and wait up to this long."""

MODERATION_CREDIT_S = 10 * ROUND_S
"""So many rounds may follow each other at once; below 3300 rounds a second nothing ever waits."""

_INPUT, _OUTPUT = 0, 1
_PR_SET_TIMERSLACK = 29  # linux/prctl.h


@dataclass(frozen=True, slots=True, kw_only=True)
class Orders:
    """What the first line tells."""

    link: dict[str, Any]
    """LinkSpec.to_json."""

    ends: list[tuple[int, str]]
    """Of the left and the right end: descriptor of the namespace, name of the device."""

    sample_s: float | None = None
    """Interval of the recorded occupancy."""

    capture: str | None = None
    """Path of a pcap file."""

    realtime: bool = True
    """Ask the kernel for SCHED_FIFO."""


class Emulation:
    """One link at work."""

    def __init__(self, orders: Orders, scheduling: str) -> None:
        self._spec = LinkSpec.from_json(orders.link)
        self._scheduling = scheduling
        self._recorder = Recorder(orders.sample_s)
        self._capture = CaptureFile(Path(orders.capture)) if orders.capture else None
        left, right = (TunDevice(netns, name, self._spec.mtu) for netns, name in orders.ends)
        for netns in {netns for netns, _ in orders.ends}:
            os.close(netns)
        self._forward = Courier(left, right, self._capture)
        self._backward = Courier(right, left, self._capture)
        self._couriers = {left.descriptor: self._forward, right.descriptor: self._backward}
        self._unanswered = b""
        self._commands: dict[str, Callable[[dict[str, Any]], dict[str, Any]]] = {
            "counters": lambda _: self._counters().to_json(),
            "occupancy": self._occupancy,
            "record": self._record,
            "restart": self._restart,
        }
        self._begin()

    def _begin(self) -> None:
        self._started_s = time.monotonic()
        self._most_unread_s = 0.0
        for name, courier, way in (
            ("forward", self._forward, self._spec.forward),
            ("backward", self._backward, self._spec.backward),
        ):
            seed = f"{self._spec.seed} {name}"
            courier.begin(Direction(way, seed=seed, started_s=self._started_s), self._spec.mtu)

    def run(self) -> None:
        """Move packets until standard input ends."""
        forward, backward, recorder = self._forward, self._backward, self._recorder
        couriers, descriptors = self._couriers, [_INPUT, *self._couriers]
        clock, wait, pause = time.monotonic, select.select, time.sleep
        woken_s, credit_s = clock(), MODERATION_CREDIT_S
        while True:
            next_s = min(forward.give(), backward.give())
            now_s = clock()
            if recorder.next_s <= now_s:
                recorder.sample(forward.occupancy(now_s), backward.occupancy(now_s))
            next_s = min(next_s, recorder.next_s)
            if now_s - woken_s > self._most_unread_s:
                self._most_unread_s = now_s - woken_s
            if credit_s < 0:
                pause(-credit_s)
                now_s = clock()
            timeout_s = None if next_s == math.inf else max(0.0, next_s - now_s)
            # select and not epoll: its time-out is not rounded to milliseconds.
            ready = wait(descriptors, (), (), timeout_s)[0]
            slept_s, woken_s = woken_s, clock()
            credit_s = min(MODERATION_CREDIT_S, credit_s + woken_s - slept_s - ROUND_S)
            for descriptor in ready:
                if descriptor != _INPUT:
                    couriers[descriptor].take()
                elif not self._answer():
                    return

    def close(self) -> None:
        """Let the devices vanish, and complete the capture."""
        for courier in self._couriers.values():
            courier.source.close()
        if self._capture is not None:
            self._capture.close()

    def _answer(self) -> bool:
        received = os.read(_INPUT, 65536)
        *lines, self._unanswered = (self._unanswered + received).split(b"\n")
        for line in lines:
            told = json.loads(line)
            try:
                reply = self._commands[told["command"]](told)
            except LabError as error:
                reply = {"error": str(error)}
            tell(reply)
        return bool(received)

    def _counters(self) -> LinkCounters:
        now_s = time.monotonic()
        return LinkCounters(
            started_s=self._started_s,
            at_s=now_s,
            forward=self._forward.counters(now_s),
            backward=self._backward.counters(now_s),
            most_unread_s=self._most_unread_s,
            processor_s=time.process_time(),
            scheduling=self._scheduling,
        )

    def _occupancy(self, told: dict[str, Any]) -> dict[str, Any]:
        return {"rows": self._recorder.rows(told["begin"], ROWS_AT_ONCE)}

    def _record(self, told: dict[str, Any]) -> dict[str, Any]:
        self._recorder.set_interval(told["interval_s"])
        return {}

    def _restart(self, told: dict[str, Any]) -> dict[str, Any]:
        if told["link"] is not None:
            spec = LinkSpec.from_json(told["link"])
            if spec.mtu != self._spec.mtu:
                raise EmulatorError("a running link keeps its MTU")
            self._spec = spec
        self._recorder.clear()
        self._begin()
        return {}


def tell(reply: dict[str, Any]) -> None:
    """Answer whoever started this process."""
    unsent = json.dumps(reply).encode() + b"\n"
    while unsent:
        unsent = unsent[os.write(_OUTPUT, unsent) :]


def _hurry(realtime: bool) -> str:
    """Ask the kernel to run this process as soon as a packet is due; tell what it granted."""
    ctypes.CDLL(None).prctl(_PR_SET_TIMERSLACK, 1, 0, 0, 0)
    if realtime:
        try:
            os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))
            return "fifo"
        except OSError:
            pass  # not allowed in this container; the next best follows, and is named
    try:
        return f"nice {os.nice(-15)}"
    except OSError:
        return "normal"


def _first_line() -> bytes:
    """Read no further than it goes: what follows is for the packet loop."""
    line = b""
    while byte := os.read(_INPUT, 1):
        if byte == b"\n":
            return line
        line += byte
    return b""


def main() -> int:
    """Emulate the link that the first line of standard input tells of."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for who started it
    first = _first_line()
    if not first:
        return 0
    try:
        orders = Orders(**json.loads(first))
        emulation = Emulation(orders, _hurry(orders.realtime))
    except (LabError, OSError) as error:
        tell({"error": str(error)})
        return 1
    gc.disable()  # nothing here makes cycles, and a collection would delay packets
    try:
        tell({"ready": True})
        try:
            emulation.run()
        finally:
            emulation.close()
    except OSError as error:
        with suppress(BrokenPipeError):  # it may be that nobody listens any more
            tell({"error": f"the emulator has ended: {error}"})
        return 1
    return 0
