"""The second backend: Mininet's TCLink, for kernels with netem.

What `tc` cannot do as asked is refused, where Mininet's own link would stay as it was. A link is
two wires with a node between them, the sky, so that a packet is first transmitted, at a rate and
from a queue of its own, and then delayed or lost:

    left ---- rate, queue ----> sky ---- delay, loss ----> right
         <--- delay, loss ----      <--- rate, queue ----

Rates have the granularity of Mininet's bucket, 15 kB: that much leaves at once after a pause.
"""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from typing import Any

from mininet_topos.errors import MissingToolError, TopologyError
from mininet_topos.link_parts import PacketLoss, Queue
from mininet_topos.links import LinkSpec, Way
from mininet_topos.namespaces import netlink
from mininet_topos.topology.links import LabIntf, Wire
from mininet_topos.topology.mininet_parts import TCIntf
from mininet_topos.topology.nodes import LabNode

MOST_BPS = TCIntf.bwParamMax * 1e6
"""Mininet ignores a rate above it."""

UNLIMITED_PACKETS = 1_000_000
"""Of netem, which would hold 1000 packets otherwise, those that are under way included."""


def transmitter(spec: LinkSpec, way: Way) -> dict[str, Any]:
    """Give what TCIntf needs for the rate and the queue of a way. Raises TopologyError."""
    if way.rate_bps is not None and way.rate_bps > MOST_BPS:
        raise _impossible(spec, f"{way.rate_bps:g} bit/s, above {MOST_BPS:g}")
    if not isinstance(way.queue, Queue) or way.queue.bytes is not None:
        raise _impossible(spec, "any queue but drop-tail in packets")
    if way.delayed_acks:
        raise _impossible(spec, "thinned ACKs")
    packets = UNLIMITED_PACKETS if way.queue.packets is None else way.queue.packets
    if way.rate_bps is None:
        return {"max_queue_size": packets}
    return {"bw": way.rate_bps / 1e6, "max_queue_size": packets}


def propagation(spec: LinkSpec, way: Way) -> dict[str, Any]:
    """Give what TCIntf needs for the delay and the loss of a way. Raises TopologyError."""
    if way.events:
        raise _impossible(spec, "outages and delay steps")
    shape: dict[str, Any] = {
        "delay": f"{way.delay_s * 1e6:.0f}us",
        "max_queue_size": UNLIMITED_PACKETS,
    }
    if way.loss is None:
        return shape
    if not isinstance(way.loss, PacketLoss):
        raise _impossible(spec, f"{type(way.loss).__name__}, only PacketLoss")
    percent = 100 * way.loss.probability
    if abs(float(f"{percent:.5f}") - percent) > 1e-3 * percent:  # Mininet writes five digits
        raise _impossible(spec, f"a loss of {way.loss.probability:g}")
    return {**shape, "loss": percent}


def _impossible(spec: LinkSpec, what: str) -> TopologyError:
    return TopologyError(f"the link {spec.name} cannot be made with netem, which has not {what}")


class ShapedIntf(LabIntf, TCIntf):  # type: ignore[misc] # Mininet has no types
    """Mininet's TCIntf, which fails where `tc` did."""

    def config(self, **shape: Any) -> dict[str, Any]:
        """Shape what the interface sends. Raises TopologyError with what tc complained of."""
        told: dict[str, Any] = super().config(**shape) or {}
        complaints = " ".join(" ".join(told.get("tcoutputs", ())).split())
        if complaints:
            raise TopologyError(
                f"{self.name} is not shaped as asked, the kernel may lack netem: {complaints}"
            )
        wanted = {"netem"} | ({"htb"} if "bw" in shape else set())
        with netlink(self.node.pid, f"the shape of {self.name}") as kernel:
            [index] = kernel.link_lookup(ifname=self.name)
            kinds = {qdisc.get_attr("TCA_KIND") for qdisc in kernel.get_qdiscs(index=index)}
        if not wanted <= kinds:
            raise TopologyError(f"{self.name} is not shaped as asked: it has only {sorted(kinds)}")
        return told


class NetemLink(Wire):
    """A wire, each of whose ends shapes what it sends."""

    def __init__(self, *nodes: LabNode, shapes: tuple[Mapping[str, Any], ...], **ends: Any) -> None:
        """Make the link; shapes: of the two ends, as `transmitter` and `propagation` give them."""
        if shutil.which("tc") is None:
            raise MissingToolError("netem is set with tc: apt-get install iproute2")
        self.shapes = dict(zip((node.name for node in nodes), shapes, strict=True))
        super().__init__(*nodes, **ends)

    def interface(self, name: str, node: LabNode, port: int, address: str) -> LabIntf:
        """Give an end that is shaped."""
        return ShapedIntf(name, node, self, port, address, **self.shapes[node.name])

    def describe(self) -> dict[str, Any]:
        """Give its ends, offloads and shapes."""
        return {**super().describe(), "kind": "netem", "shapes": self.shapes}
