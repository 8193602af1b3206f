"""One server and one client with a satellite link between their routers."""

from __future__ import annotations

from mininet_topos import link_presets
from mininet_topos.links import LinkSpec, Loss, Outage, Queue, Red
from mininet_topos.topology.base import LabTopo, loss_of, queue_of, symmetric

ETHERNET_BPS = 10e6
"""The local networks of the 1990s' texts."""


class SatelliteDumbbell(LabTopo):
    """
    server ---- r1 ==== satellite ==== r2 ---- client

    The forward way of the satellite link is from server to client.
    """

    def connect(self, satellite: LinkSpec, ethernet_bps: float | None) -> None:
        """Plan the nodes and the three links."""
        self.host("server")
        self.router("r1")
        self.router("r2")
        self.host("client")
        self.wire("server", "r1", ethernet_bps)
        self.satellite("satellite", "r1", "r2", satellite)
        self.wire("r2", "client", ethernet_bps)


class ActsT1(SatelliteDumbbell):
    """T1 over the ACTS satellite: 1.536 Mbit/s, 560 ms.

                 10M            1.536 Mbit/s             10M
        server -------- r1 ==================== r2 -------- client
                            drop-tail, 280 ms

    The routers are the Cisco 2514 of the text, whose drop-tail queue is a parameter as its size is
    not told. With the delays of the second text (2 x 290 ms) give rtt_s=0.58.
    """

    source = "Allman 1997, figures 2.1 and 2.2; Allman, Hayes, Kruse and Ostermann 1997, figure 2"

    def build(
        self,
        queue: Queue | Red | int | None = None,
        loss: Loss | float | None = None,
        rtt_s: float = 2 * link_presets.ACTS_T1_DELAY_S,
        ethernet_bps: float | None = ETHERNET_BPS,
        seed: int = 1,
    ) -> None:
        """Plan it. queue: of each router, a number is packets; loss: a number is a probability."""
        link = link_presets.acts_t1(queue_of(queue), loss=loss_of(loss), rtt_s=rtt_s, seed=seed)
        self.connect(link, ethernet_bps)


class HalfT1(SatelliteDumbbell):
    """Half a T1 channel over ACTS: 768 kbit/s, 2 x 290 ms.

             10M             768 kbit/s              10M
    server -------- r1 ==================== r2 -------- client
                        drop-tail, 290 ms
    """

    source = "Allman, Hayes, Kruse and Ostermann 1997, figures 1 and 2"

    def build(
        self,
        queue: Queue | Red | int | None = None,
        loss: Loss | float | None = None,
        ethernet_bps: float | None = ETHERNET_BPS,
        seed: int = 1,
    ) -> None:
        """Plan it. queue: of each router, a number is packets; loss: a number is a probability."""
        link = link_presets.half_t1(queue_of(queue), loss=loss_of(loss), seed=seed)
        self.connect(link, ethernet_bps)


class Italsat(SatelliteDumbbell):
    """ITALSAT II: 2 Mbit/s, above 500 ms, two earth stations with a PC each.

             10M              2 Mbit/s               10M
    server -------- r1 ==================== r2 -------- client
                        drop-tail, 260 ms
    """

    source = "Marchese 2001, figure 1"

    def build(
        self,
        queue: Queue | Red | int | None = None,
        rtt_s: float = 0.52,
        ethernet_bps: float | None = ETHERNET_BPS,
        seed: int = 1,
    ) -> None:
        """Plan it. queue: of each router, a number is packets."""
        self.connect(link_presets.italsat(queue_of(queue), rtt_s=rtt_s, seed=seed), ethernet_bps)


class HtsGeo(SatelliteDumbbell):
    """A geostationary link of today: 50 Mbit/s to the client, 5 Mbit/s back, 600 ms.

                      50 Mbit/s -->
    server -------- r1 ==================== r2 -------- client
                      <-- 5 Mbit/s, 300 ms
    """

    source = "a service of today"

    def build(
        self,
        queue: Queue | Red | int | None = None,
        loss: Loss | float | None = None,
        rtt_s: float = 0.6,
        ethernet_bps: float | None = None,
        seed: int = 1,
    ) -> None:
        """Plan it. queue: towards the client, one rate x RTT by default; a number is packets."""
        link = link_presets.hts_geo(queue_of(queue), loss=loss_of(loss), rtt_s=rtt_s, seed=seed)
        self.connect(link, ethernet_bps)


class Leo(SatelliteDumbbell):
    """A low-orbit link of today: 200 Mbit/s to the client, 20 Mbit/s back, 40 ms.

                      200 Mbit/s -->
    server -------- r1 ==================== r2 -------- client
                      <-- 20 Mbit/s, 20 ms
    """

    source = "a service of today"

    def build(
        self,
        queue: Queue | Red | int | None = None,
        loss: Loss | float | None = None,
        hand_over: Outage | None = None,
        rtt_s: float = 0.04,
        ethernet_bps: float | None = None,
        seed: int = 1,
    ) -> None:
        """Plan it. hand_over: when the satellite is away, both ways."""
        link = link_presets.leo(
            queue_of(queue), loss=loss_of(loss), hand_over=hand_over, rtt_s=rtt_s, seed=seed
        )
        self.connect(link, ethernet_bps)


class AdalrHybrid(LabTopo):
    """A terrestrial and a satellite hop, narrow on the way back.

                 10 Mbit/s               2048 kbit/s -->
        server =========== gateway ======================= client
                   10 ms               <-- 256 kbit/s, 250 ms

    The RTT is 520 ms. The gateway's queue towards the satellite is the one that overflows.
    """

    source = "TCP-ADaLR thesis, Simon Fraser University, figure 7.2"

    def build(
        self,
        queue: Queue | Red | int | None = None,
        loss: Loss | float | None = None,
        forward_bps: float = 2.048e6,
        backward_bps: float = 256e3,
        terrestrial_delay_s: float = 0.010,
        seed: int = 1,
    ) -> None:
        """Plan it. terrestrial_delay_s: one way; 0.05 is the case of table 7.6."""
        self.host("server")
        self.router("gateway")
        self.host("client")
        self.satellite(
            "terrestrial",
            "server",
            "gateway",
            symmetric(
                "terrestrial", ETHERNET_BPS, terrestrial_delay_s, seed=seed, source=self.source
            ),
        )
        self.satellite(
            "satellite",
            "gateway",
            "client",
            link_presets.adalr_satellite(
                queue_of(queue),
                rates_bps=(forward_bps, backward_bps),
                loss=loss_of(loss),
                seed=seed,
            ),
        )
