"""Several pairs of hosts, each with an RTT of its own, that share a bottleneck."""

from __future__ import annotations

from collections.abc import Sequence

from mininet_topos import link_presets
from mininet_topos.errors import TopologyError
from mininet_topos.links import LinkSpec, Queue, Red
from mininet_topos.topology.base import LabTopo, queue_of, symmetric

ACCESS_BPS = 10e6
"""Of the hosts' own links. Henderson's figure 4.4 draws no rates that could be read: 10 Mbit/s is
what section 4.2.2 has around its bottleneck."""

WEB_RTT_S = 0.1
"""Of the pair for the background load, whose RTT the text does not tell."""


class Pairs(LabTopo):
    """Senders and receivers at routers, each pair with the RTT that was asked for."""

    def pair(
        self,
        names: tuple[str, str],
        routers: tuple[str, str],
        rtt_s: float,
        crossed_s: float,
    ) -> None:
        """Plan a sender at the first router and a receiver at the second.

        rtt_s: of the pair; crossed_s: what of it the links between the routers have.
        """
        sender, receiver = names
        delay_s = (rtt_s - crossed_s) / 2
        if delay_s < -1e-9:
            raise TopologyError(
                f"an RTT of {rtt_s:g} s is below the {crossed_s:g} s of the shared links"
            )
        self.host(sender)
        self.host(receiver)
        self.wire(sender, routers[0], ACCESS_BPS)
        label = f"access_{receiver}"
        link = symmetric(label, ACCESS_BPS, max(0.0, delay_s), source=self.source)
        self.satellite(label, routers[1], receiver, link)


class SharedBottleneck(Pairs):
    """
    s1 ---\\                        /=== d1
    s2 ---- a ==== bottleneck ==== b === d2     the links of d1, d2 ... have the pairs' delays
    ...                                  ...
    """

    def connect(
        self, bottleneck: LinkSpec, rtts_s: Sequence[float], web_rtt_s: float | None = None
    ) -> None:
        """Plan pairs s1-d1, s2-d2, ... and, with web_rtt_s, the pair web_s-web_d."""
        self.router("a")
        self.router("b")
        self.satellite("bottleneck", "a", "b", bottleneck)
        for number, rtt_s in enumerate(rtts_s, start=1):
            self.pair((f"s{number}", f"d{number}"), ("a", "b"), rtt_s, bottleneck.rtt_s)
        if web_rtt_s is not None:
            self.pair(("web_s", "web_d"), ("a", "b"), web_rtt_s, bottleneck.rtt_s)


class Henderson1(SharedBottleneck):
    """One short and one long connection over a bottleneck of 1.5 Mbit/s.

    s1 ----\\                               /==== d1      10 ms
            a ======= bottleneck ======== b
    s2 ----/    1.5 Mbit/s, FIFO or RED    \\==== d2      100 ... 600 ms

    web_s - a, b - web_d: a pair for the background load
    """

    source = "Henderson 1999, figure 4.4, topology 1"

    def build(
        self,
        queue: Queue | Red | int | None = None,
        long_rtt_s: float = 0.6,
        short_rtt_s: float = 0.01,
        web_rtt_s: float = WEB_RTT_S,
        seed: int = 1,
    ) -> None:
        """Plan it. queue: of the bottleneck, 50 packets by default."""
        bottleneck = link_presets.henderson_bottleneck(queue_of(queue), seed=seed)
        self.connect(bottleneck, (short_rtt_s, long_rtt_s), web_rtt_s)


class Henderson2(SharedBottleneck):
    """Six connections over a bottleneck of 1.5 Mbit/s.

    s1 ----\\                               /==== d1      10 ms
    s2 -----\\                             /===== d2      20 ms
    s3 ------\\                           /====== d3     100 ms
    s4 ------- a ===== bottleneck ===== b ====== d4     200 ms
    s5 ------/  1.5 Mbit/s, FIFO or RED  \\====== d5     300 ms
    s6 -----/                             \\===== d6     600 ms

    web_s - a, b - web_d: a pair for the background load
    """

    source = "Henderson 1999, figure 4.4, topology 2"

    RTTS_S = (0.010, 0.020, 0.100, 0.200, 0.300, 0.600)

    def build(
        self,
        queue: Queue | Red | int | None = None,
        rtts_s: Sequence[float] = RTTS_S,
        web_rtt_s: float = WEB_RTT_S,
        seed: int = 1,
    ) -> None:
        """Plan it. queue: of the bottleneck, 50 packets by default."""
        bottleneck = link_presets.henderson_bottleneck(queue_of(queue), seed=seed)
        self.connect(bottleneck, rtts_s, web_rtt_s)


class Henderson3(Pairs):
    """A long connection through a chain of congested gateways, each hop with a short one.

              s1      d1 s2      d2 s3      d3         (5 gateways: up to s5, d5)
               \\      /   \\      /   \\      /
        s0 ---- g0 ==== g1 ===== g2 ==== g3 ... ====== d0
                  hop1      hop2     hop3
               1.5 Mbit/s each, FIFO or RED

    s0 to d0 crosses every hop; s1 to d1 only the first, and so on. The text does not tell the RTT
    of the long connection here; that of the short ones is 10 ms. Background load goes over the
    short pairs.
    """

    source = "Henderson 1999, figure 4.4, topology 3; Floyd 1991"

    MOST_GATEWAYS = 10

    def build(
        self,
        queue: Queue | Red | int | None = None,
        gateways: int = 5,
        long_rtt_s: float = 0.6,
        short_rtt_s: float = 0.01,
        seed: int = 1,
    ) -> None:
        """Plan it. gateways: congested ones, 1 to 10; queue: of each, 50 packets by default."""
        if not 1 <= gateways <= self.MOST_GATEWAYS:
            raise TopologyError(f"{gateways} congested gateways: 1 to {self.MOST_GATEWAYS} can be")
        routers = [self.router(f"g{number}") for number in range(gateways + 1)]
        hop_rtt_s = 0.0
        for number in range(1, gateways + 1):
            hop = link_presets.henderson_bottleneck(queue_of(queue), seed=seed + number - 1)
            hop_rtt_s = hop.rtt_s
            near, far = routers[number - 1], routers[number]
            self.satellite(f"hop{number}", near, far, hop)
            self.pair((f"s{number}", f"d{number}"), (near, far), short_rtt_s, hop_rtt_s)
        ends = (routers[0], routers[-1])
        self.pair(("s0", "d0"), ends, long_rtt_s, gateways * hop_rtt_s)


class HendersonTestbed(LabTopo):
    """One satellite flow, and one of 20 ms that does not cross the satellite.

        server ---- a ==== transit ==== b ==== satellite ==== client
                   /      10 Mbit/s      \\      1.3 Mbit/s, 600 ms
        bg_s -----/                       \\---- bg_d
             100 Mbit/s                       10 Mbit/s

    The delays of the text's satellite were in the hosts' device drivers; here they are in a link.
    The pair bg_s, bg_d has 20 ms and shares the transit Ethernet only.
    """

    source = "Henderson 1999, section 4.2.2 and figures 4.11, 4.13, 4.20"

    def build(
        self,
        queue: Queue | Red | int | None = 50,
        transit_queue: Queue | Red | int | None = 50,
        rtt_s: float = 0.6,
        satellite_bps: float = 1.3e6,
        background_rtt_s: float = 0.02,
        seed: int = 1,
    ) -> None:
        """Plan it. queue: of the satellite link; the text tells neither queue's size."""
        self.host("server")
        self.router("a")
        self.router("b")
        self.host("client")
        self.host("bg_s")
        self.host("bg_d")
        self.wire("server", "a", 100e6)
        self.wire("bg_s", "a", 100e6)
        self.satellite(
            "transit",
            "a",
            "b",
            symmetric("transit", 10e6, 0.0, queue_of(transit_queue), seed=seed, source=self.source),
        )
        self.satellite(
            "satellite",
            "b",
            "client",
            symmetric(
                "satellite",
                satellite_bps,
                rtt_s / 2,
                queue_of(queue),
                seed=seed,
                source=self.source,
            ),
        )
        self.satellite(
            "access_bg_d",
            "b",
            "bg_d",
            symmetric("access_bg_d", 10e6, background_rtt_s / 2, source=self.source),
        )


class AdalrFairness(SharedBottleneck):
    """Six server-client pairs with one link of 10 Mbit/s in common.

        s1 ----\\                        /==== d1      25 ms
        s2 -----\\                      /===== d2      50 ms
        s3 ------\\                    /====== d3     100 ms
        s4 ------- a == bottleneck == b ====== d4     300 ms
        s5 ------/      10 Mbit/s      \\====== d5     400 ms
        s6 -----/                       \\===== d6     500 ms

    Every link has 10 Mbit/s. Pairs of 25 ms cannot cross a geostationary satellite, so the delays
    are in the receivers' links, and the shared one has next to none.
    """

    source = "TCP-ADaLR thesis, Simon Fraser University, figure 7.52 and table 7.11"

    RTTS_S = (0.025, 0.050, 0.100, 0.300, 0.400, 0.500)

    def build(
        self,
        queue: Queue | Red | int | None = None,
        rtts_s: Sequence[float] = RTTS_S,
        seed: int = 1,
    ) -> None:
        """Plan it. queue: of the shared link, unlimited by default as the text has no losses."""
        bottleneck = symmetric(
            "bottleneck", 10e6, 0.001, queue_of(queue), seed=seed, source=self.source
        )
        self.connect(bottleneck, rtts_s)
