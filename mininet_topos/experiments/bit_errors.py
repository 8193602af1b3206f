"""What the two rows of the TCP-ADaLR thesis with bit errors share."""

from __future__ import annotations

from typing import Any

from ..links import BitErrors
from . import adalr
from .adalr import ADALR_NEWRENO, ADALR_SACK, KB, MB, PLAIN, SACK, VARIANTS, Network
from .measures import Metric, throughput
from .rules import Rule, not_below
from .spec import Figure, Point

BERS = {1e-9: "1e-9", 1e-8: "1e-8", 1e-7: "1e-7", 1e-6: "1e-6", 1e-5: "1e-5"}
"""Table 7.1; a packet of 1500 bytes is lost with 1 - (1 - BER)^12000."""

LOW_BER, HIGH_BER = 1e-9, 1e-6

SIZES = {1e-9: 20 * MB, 1e-8: 20 * MB, 1e-7: 20 * MB, 1e-6: 10 * MB, 1e-5: 500 * KB}
"""Files by bit error rate: all take minutes, and have hundreds of losses where there are any."""

QUICK_SIZES = {1e-6: 2 * MB}

TYPICAL_BYTES_PER_S = {
    1e-9: 110_000.0,
    1e-8: 100_000.0,
    1e-7: 60_000.0,
    1e-6: 25_000.0,
    1e-5: 3_000.0,
}
"""About, of a plain TCP."""

SLACK = 0.05


def points(quick: bool, queue_packets: int | None) -> tuple[Point, ...]:
    """Give each TCP at each rate; queue_packets: of the gateway, None: all that come."""
    return tuple(
        adalr.point(
            variant,
            ber,
            variant,
            size,
            network(ber, queue_packets),
            typical_bytes_per_s=TYPICAL_BYTES_PER_S[ber],
        )
        for ber, size in (QUICK_SIZES if quick else SIZES).items()
        for variant in ((ADALR_SACK, SACK) if quick else VARIANTS)
    )


def network(ber: float, queue_packets: int | None) -> Network:
    """Give the network with errors on the satellite, both ways."""
    parameters: dict[str, Any] = {"loss": BitErrors(rate=ber)}
    if queue_packets is not None:
        parameters["queue"] = queue_packets
    return Network(parameters=parameters)


def no_slower(bers: tuple[float, ...]) -> tuple[Rule, ...]:
    """Give the rule that ADaLR is no slower than what it extends."""
    return tuple(
        not_below("throughput", variant, plain, bers, SLACK) for variant, plain in PLAIN.items()
    )


METRICS = (
    *adalr.METRICS,
    Metric(
        name="gain",
        label="throughput gained by ADaLR, %",
        measure=throughput(),
        baseline=lambda series, x: (PLAIN[series], x),
        series=frozenset(PLAIN),
    ),
)


def figures(title: str) -> tuple[Figure, ...]:
    """Give throughputs, and what ADaLR gains."""
    return (
        adalr.bars(f"2048/256 kbit/s, 520 ms, {title}", BERS, "bit error rate"),
        Figure(
            metric="gain",
            title=f"gained by ADaLR: {title}",
            x_label="bit error rate",
            kind="bars",
            x_names=BERS,
            series=(ADALR_SACK, ADALR_NEWRENO),
        ),
    )


DEVIATIONS = (
    *adalr.DEVIATIONS,
    "files are 20 MB, 10 MB at 1e-6 and 500 kB at 1e-5, as 50 MB would take hours there: a rate is "
    "a rate; the text averages over four seeds, which --repeat 4 does",
)
