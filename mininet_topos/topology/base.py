"""The base of all topologies: a plan of nodes and links, with addresses and routes worked out."""

from __future__ import annotations

import inspect
import ipaddress
from collections import deque
from typing import Any, ClassVar

from mininet_topos.errors import TopologyError
from mininet_topos.link_parts import Loss, PacketLoss, Queue, Red
from mininet_topos.links import LinkSpec, Way
from mininet_topos.topology.links import SatelliteLink, Wire
from mininet_topos.topology.mininet_parts import Topo
from mininet_topos.topology.netem import NetemLink, propagation, transmitter
from mininet_topos.topology.nodes import LabNode, Route, Router

SUBNETS = ipaddress.IPv4Network("10.77.0.0/16")
"""Every link has four addresses of it; labs are apart, so they all use the same."""

BACKENDS = ("emulator", "netem")

LONGEST_NODE_NAME = 10
"""An interface is NAME-ethN with at most 15 letters: IFNAMSIZ of linux/if.h."""


class LabTopo(Topo):  # type: ignore[misc] # Mininet has no types
    """A topology as data: nothing runs until Mininet or a `Lab` builds it.

    Subclasses define `build(**parameters)`, which calls `host`, `router`, `wire` and `satellite`.
    """

    source: ClassVar[str] = ""
    """Text, section and figure that it is from."""

    def __init__(self, *, backend: str = "emulator", **parameters: Any) -> None:
        """Plan the topology. Raises TopologyError or LinkError for parameters that cannot be.

        backend: "emulator", or "netem" for Mininet's TCLink on kernels that can.
        """
        if backend not in BACKENDS:
            raise TopologyError(f"there is no backend {backend!r}, only {', '.join(BACKENDS)}")
        self.backend = backend
        self.parameters = parameters
        self._subnets = SUBNETS.subnets(new_prefix=30)
        self._attached: dict[str, dict[str, str]] = {}
        self._networks: dict[str, list[ipaddress.IPv4Network]] = {}
        self.labels: list[str] = []
        self.host_names: list[str] = []
        self._skies = 0
        self._check_names(parameters)
        super().__init__(**parameters)
        self._plan_routes()

    def _check_names(self, parameters: dict[str, Any]) -> None:
        known = inspect.signature(self.build).parameters
        unknown = sorted(set(parameters) - set(known))
        if unknown:
            raise TopologyError(
                f"{type(self).__name__} has no {', '.join(unknown)}; it has {', '.join(known)}"
            )

    def host(self, name: str) -> str:
        """Add a host, on which programs run."""
        self.host_names.append(name)
        return self._node(name, LabNode)

    def router(self, name: str) -> str:
        """Add a node that forwards and runs no programs."""
        return self._node(name, Router)

    def _node(self, name: str, kind: type[LabNode]) -> str:
        if not name.isidentifier() or len(name) > LONGEST_NODE_NAME:
            raise TopologyError(
                f"{name!r} is no name for a node: up to {LONGEST_NODE_NAME} letters"
            )
        if name in self._attached:
            raise TopologyError(f"there are two nodes named {name!r}")
        self._attached[name] = {}
        self._networks[name] = []
        self.addHost(name, cls=kind)
        return name

    def wire(self, left: str, right: str, rate_bps: float | None = None) -> None:
        """Connect two nodes by Ethernet, in bits per second; None: as fast as the machine is."""
        if rate_bps is not None and rate_bps <= 0:
            raise TopologyError(f"a wire of {rate_bps} bit/s carries nothing")
        self._connect(f"{left}-{right}", left, right, cls=Wire, rate_bps=rate_bps)

    def satellite(self, label: str, left: str, right: str, spec: LinkSpec) -> None:
        """Connect two nodes by an emulated link; its forward way is from left to right."""
        if self.backend == "emulator":
            self._connect(label, left, right, cls=SatelliteLink, spec=spec)
            return
        self._skies += 1
        sky = self.router(f"sky{self._skies}")
        near = (transmitter(spec, spec.forward), propagation(spec, spec.backward))
        far = (propagation(spec, spec.forward), transmitter(spec, spec.backward))
        self._connect(f"{label}-near", left, sky, cls=NetemLink, shapes=near, mtu=spec.mtu)
        self._connect(f"{label}-far", sky, right, cls=NetemLink, shapes=far, mtu=spec.mtu)

    def _connect(self, label: str, left: str, right: str, **options: Any) -> None:
        for name in (left, right):
            if name not in self._attached:
                raise TopologyError(f"the link {label!r} goes to {name!r}, which is no node")
        if label in self.labels:
            raise TopologyError(f"there are two links named {label!r}")
        self.labels.append(label)
        network = next(self._subnets)
        first, second = network.hosts()
        self._attached[left][right] = str(second)
        self._attached[right][left] = str(first)
        for name in (left, right):
            self._networks[name].append(network)
        addresses = (f"{first}/{network.prefixlen}", f"{second}/{network.prefixlen}")
        self.addLink(left, right, label=label, addresses=addresses, **options)

    def _plan_routes(self) -> None:
        """Give every node the routes of fewest hops to every link that is not its own."""
        for name, neighbours in self._attached.items():
            if not neighbours:
                raise TopologyError(f"the node {name!r} has no link")
            if len(neighbours) == 1:
                [gateway] = neighbours.values()
                routes: tuple[Route, ...] = (Route("default", gateway),)
            else:
                routes = tuple(self._routes_from(name))
            self.g.node[name]["routes"] = routes

    def _routes_from(self, start: str) -> list[Route]:
        routes = []
        known = set(self._networks[start])
        first_hop = {neighbour: neighbour for neighbour in self._attached[start]}
        waiting = deque(first_hop)
        seen = {start, *first_hop}
        while waiting:
            name = waiting.popleft()
            gateway = self._attached[start][first_hop[name]]
            for network in self._networks[name]:
                if network not in known:
                    known.add(network)
                    routes.append(Route(str(network), gateway))
            for neighbour in self._attached[name]:
                if neighbour not in seen:
                    seen.add(neighbour)
                    first_hop[neighbour] = first_hop[name]
                    waiting.append(neighbour)
        return routes


def queue_of(value: Queue | Red | int | None) -> Queue | Red | None:
    """Read a queue that may be given as a number of packets, as on the command line of mn."""
    return Queue(packets=value) if isinstance(value, int) else value


def loss_of(value: Loss | float | None) -> Loss | None:
    """Read a loss that may be given as a probability."""
    return PacketLoss(probability=value) if isinstance(value, int | float) else value


def symmetric(
    name: str,
    rate_bps: float,
    delay_s: float,
    queue: Queue | Red | None = None,
    *,
    source: str,
    seed: int = 1,
) -> LinkSpec:
    """Give a link that is the same in both directions; queue None: unlimited."""
    way = Way(rate_bps=rate_bps, delay_s=delay_s, queue=queue or Queue())
    return LinkSpec(name=name, forward=way, backward=way, seed=seed, source=source)
