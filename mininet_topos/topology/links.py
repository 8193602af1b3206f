"""Links between nodes: Ethernet as veth pairs, satellite links as pairs of TUN devices."""

from __future__ import annotations

import os
import stat
from collections.abc import Sequence
from contextlib import nullcontext
from typing import Any

from pyroute2 import IPRoute
from pyroute2.ethtool.ioctl import IoctlEthtool, NotSupportedError

from mininet_topos.emulator.link import EmulatedLink, End
from mininet_topos.errors import MissingToolError, TopologyError
from mininet_topos.links import LinkSpec
from mininet_topos.namespaces import Kind, inside, netlink
from mininet_topos.topology.mininet_parts import Intf, Link
from mininet_topos.topology.nodes import LabNode

OFFLOADS = (
    "tcp-segmentation-offload",
    "generic-segmentation-offload",
    "generic-receive-offload",
)
"""Off on every veth, or one "packet" is up to 64 KiB; `ethtool -K` calls them tso, gso and gro."""

ETHERNET_HEADER_BYTES = 14
"""What a token bucket counts with every packet: IEEE 802.3 clause 3, without preamble and FCS."""

TICK_SLACK_BYTES = 64
"""The kernel keeps a bucket as a time in whole ticks, and drops packets larger than the rest."""

WIRE_QUEUE_BYTES = 1 << 20
"""Of a shaped wire. The sender's own queue never drops: losses belong to the emulated links."""

TUN = "/dev/net/tun"


def require_tun() -> None:
    """Raise MissingToolError unless the kernel has TUN devices."""
    try:
        is_device = stat.S_ISCHR(os.stat(TUN).st_mode)
    except OSError:
        is_device = False
    if not is_device:
        raise MissingToolError(f"emulated links need {TUN}, which is not there: modprobe tun")


class LabIntf(Intf):  # type: ignore[misc] # Mininet has no types
    """An interface that is already up and has its address; Mininet's own runs ifconfig."""

    def __init__(
        self, name: str, node: LabNode, link: Link, port: int, address: str, **shape: Any
    ) -> None:
        super().__init__(name, node=node, link=link, port=port, moveIntfFn=_stays, **shape)
        self.ip, _, length = address.partition("/")
        self.prefixLen = int(length)

    def isUp(self, setUp: bool = False) -> bool:
        """Tell whether the interface is up."""
        with netlink(self.node.pid, f"the state of {self.name}") as kernel:
            if setUp:
                kernel.link("set", index=_index(kernel, self.name), state="up")
            [found] = kernel.get_links(_index(kernel, self.name))
        return bool(found["flags"] & 1)  # IFF_UP of linux/if.h

    def updateIP(self) -> str:
        """Give the address; nothing else changes it."""
        return str(self.ip)

    def delete(self) -> None:
        """Forget the interface; it goes with its namespace or its emulator."""
        self.node.delIntf(self)
        self.link = None


def _stays(*_: Any) -> None:
    """Stand in for the function that moves an interface to its namespace: it is there already."""


class LabLink(Link):  # type: ignore[misc] # Mininet has no types
    """A link of a lab: makes two interfaces and gives them their addresses."""

    infix = "eth"

    def __init__(
        self,
        node1: LabNode,
        node2: LabNode,
        *,
        port1: int,
        port2: int,
        label: str,
        addresses: tuple[str, str],
        intf: type[Intf] | None = None,
        addr1: str | None = None,
        addr2: str | None = None,
    ) -> None:
        """Make the link between two nodes.

        label: its name in the topology; addresses: of the two ends, with prefix length;
        intf, addr1, addr2: Mininet's defaults, which are not used. Raises LabError where the link
        cannot be made as asked.
        """
        self.label = label
        nodes, ports = (node1, node2), (port1, port2)
        names = [f"{node.name}-{self.infix}{port}" for node, port in zip(nodes, ports, strict=True)]
        self.make(nodes, names)
        try:
            for node, name, address in zip(nodes, names, addresses, strict=True):
                _set_address(node, name, address)
            self.intf1, self.intf2 = (
                self.interface(name, node, port, address)
                for name, node, port, address in zip(names, nodes, ports, addresses, strict=True)
            )
        except BaseException:
            self.unmake()
            raise

    def make(self, nodes: tuple[LabNode, LabNode], names: Sequence[str]) -> None:
        """Make the interfaces and leave them up."""
        raise NotImplementedError

    def interface(self, name: str, node: LabNode, port: int, address: str) -> LabIntf:
        """Give Mininet's view of one end."""
        return LabIntf(name, node, self, port, address)

    def unmake(self) -> None:
        """End what does not end with the nodes."""

    def stop(self) -> None:
        """Take the link down."""
        self.unmake()
        super().stop()

    def describe(self) -> dict[str, Any]:
        """Give what a result says of the link."""
        raise NotImplementedError

    def _base(self) -> dict[str, Any]:
        ends = [f"{end.name} {end.ip}/{end.prefixLen}" for end in (self.intf1, self.intf2)]
        return {"label": self.label, "ends": ends}


class Wire(LabLink):
    """An Ethernet: a veth pair without offloads, in both directions at most at its rate."""

    def __init__(
        self,
        *nodes: LabNode,
        rate_bps: float | None = None,
        mtu: int = 1500,
        **ends: Any,
    ) -> None:
        """Make the wire; ends: as LabLink wants them."""
        self.rate_bps = rate_bps
        self.mtu = mtu
        self.offloads: dict[str, dict[str, bool]] = {}
        super().__init__(*nodes, **ends)

    def make(self, nodes: tuple[LabNode, LabNode], names: Sequence[str]) -> None:
        """Make the pair. Raises TopologyError if the kernel does not shape or segment as asked."""
        first, second = nodes
        with netlink(first.pid, f"the wire {self.label}") as kernel:
            peer = {"ifname": names[1], "net_ns_pid": second.pid, "mtu": self.mtu}
            kernel.link("add", ifname=names[0], kind="veth", mtu=self.mtu, peer=peer)
        for node, name in zip(nodes, names, strict=True):
            self.offloads[name] = switch_offloads_off(node.pid, name)
            with netlink(node.pid, f"the wire {self.label}") as kernel:
                index = _index(kernel, name)
                if self.rate_bps is not None:
                    limit_rate(kernel, index, name, self.rate_bps, self.mtu)
                kernel.link("set", index=index, state="up")

    def describe(self) -> dict[str, Any]:
        """Give its ends, rate and the offloads as read back."""
        return {
            **self._base(),
            "kind": "veth",
            "rate_bps": self.rate_bps,
            "offloads": self.offloads,
        }


class SatelliteLink(LabLink):
    """A link through the emulator: a TUN device at each end, without ARP or Ethernet header."""

    infix = "tun"

    def __init__(self, *nodes: LabNode, spec: LinkSpec, **ends: Any) -> None:
        """Make the link; ends: as LabLink wants them."""
        self.spec = spec
        super().__init__(*nodes, **ends)

    def make(self, nodes: tuple[LabNode, LabNode], names: Sequence[str]) -> None:
        """Start the emulator. Raises MissingToolError without TUN, EmulatorError if it fails."""
        require_tun()
        left, right = (
            End(interface=name, pid=node.pid) for node, name in zip(nodes, names, strict=True)
        )
        tree = nodes[0].tree
        with tree.holding() if tree is not None else nullcontext():
            self.emulated = EmulatedLink.start(self.spec, left, right)

    def unmake(self) -> None:
        """End the emulator; the devices go with it."""
        self.emulated.stop()

    def describe(self) -> dict[str, Any]:
        """Give its ends and its specification."""
        return {**self._base(), "kind": "emulated", "spec": self.spec.to_json()}


def switch_offloads_off(pid: int, interface: str) -> dict[str, bool]:
    """Switch an interface's offloads off and give them as the kernel tells them afterwards.

    Raises TopologyError if one stays on.
    """
    with inside(pid, Kind.NETWORK):
        device = IoctlEthtool(interface)
    try:
        for name in OFFLOADS:
            device.set_offload_flag(name, 0)
        told = device.get_offload_flags()
    except (OSError, NotSupportedError) as error:
        raise TopologyError(f"the offloads of {interface} cannot be switched: {error}") from error
    finally:
        device.close()
    states = {name: bool(told[name]) for name in OFFLOADS}
    if any(states.values()):
        on = ", ".join(name for name, state in states.items() if state)
        raise TopologyError(f"{interface} keeps {on} on: a packet there can be up to 64 KiB")
    return states


def limit_rate(kernel: IPRoute, index: int, interface: str, rate_bps: float, mtu: int) -> None:
    """Limit what an interface sends, with a token bucket of one packet.

    Raises TopologyError unless the kernel says afterwards that it does.
    """
    rate = round(rate_bps / 8)
    bucket = mtu + ETHERNET_HEADER_BYTES + TICK_SLACK_BYTES
    kernel.tc("add", "tbf", index, handle=0x10000, rate=rate, burst=bucket, limit=WIRE_QUEUE_BYTES)
    for qdisc in kernel.get_qdiscs(index=index):
        if qdisc.get_attr("TCA_KIND") == "tbf":
            granted = qdisc.get_nested("TCA_OPTIONS", "TCA_TBF_PARMS")
            if granted is not None and granted["rate"] == rate:
                return
    raise TopologyError(f"{interface} is not limited to {rate_bps:g} bit/s: the kernel ignores it")


def _set_address(node: LabNode, interface: str, address: str) -> None:
    with netlink(node.pid, f"the address of {interface}") as kernel:
        kernel.addr("add", index=_index(kernel, interface), address=address)


def _index(kernel: IPRoute, interface: str) -> int:
    found = kernel.link_lookup(ifname=interface)
    if not found:
        raise TopologyError(f"the interface {interface} is gone")
    return int(found[0])
