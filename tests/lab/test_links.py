"""Links are checked when they are made, and survive JSON."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mininet_topos import link_presets
from mininet_topos.errors import LabError, LinkError
from mininet_topos.links import (
    BitErrors,
    DelayStep,
    ErrorBursts,
    GilbertElliott,
    LinkSpec,
    Outage,
    PacketLoss,
    Queue,
    Red,
    Way,
)

IMPOSSIBLE: list[tuple[type, dict[str, Any], str]] = [
    (Way, {"rate_bps": 0}, "a rate of 0 bit/s carries nothing"),
    (Way, {"rate_bps": -1e6}, "carries nothing"),
    (Way, {"rate_bps": math.nan}, "carries nothing"),
    (Way, {"delay_s": -0.1}, "a delay of -0.1 s is not in the future"),
    (Way, {"delay_s": math.inf}, "a delay of inf s"),
    (Way, {"queue": Red()}, "RED needs a rate"),
    (Way, {"queue": 50}, "neither drop-tail nor RED"),
    (Way, {"loss": 0.1}, "no kind of loss"),
    (Way, {"events": (3.0,)}, "neither outage nor delay step"),
    (Queue, {"packets": 0}, "a queue of 0 packets holds nothing"),
    (Queue, {"bytes": -1}, "a queue of -1 bytes holds nothing"),
    (Queue, {"packets": 2.5}, "a queue of 2.5 packets holds nothing"),
    (Red, {"min_packets": 40, "max_packets": 20}, "not in order"),
    (Red, {"limit_packets": 0}, "holds nothing"),
    (Red, {"max_probability": 1.5}, "not between 0 and 1"),
    (Red, {"weight": 0}, "never sees the queue"),
    (PacketLoss, {"probability": 2}, "a packet's loss probability of 2 is not between 0 and 1"),
    (PacketLoss, {"probability": -0.1}, "not between 0 and 1"),
    (BitErrors, {"rate": math.nan}, "not between 0 and 1"),
    (ErrorBursts, {"every_bits": 100, "length_bits": 0}, "is none"),
    (ErrorBursts, {"every_bits": 100, "length_bits": 101}, "does not end before the next"),
    (GilbertElliott, {"p_good_to_bad": 1.1, "p_bad_to_good": 0}, "going bad"),
    (Outage, {"at_s": 1, "lasts_s": 0}, "an outage of 0 s is none"),
    (Outage, {"at_s": -1, "lasts_s": 1}, "not in the future"),
    (Outage, {"at_s": 1, "lasts_s": 2, "every_s": 2}, "never ends"),
    (DelayStep, {"at_s": 1, "delay_s": -1}, "not in the future"),
    (LinkSpec, {"name": "", "forward": Way(), "backward": Way()}, "needs a name"),
    (LinkSpec, {"name": "x", "forward": Way(), "backward": Way(), "mtu": 60}, "MTU of 60"),
]


@pytest.mark.parametrize(("kind", "values", "sentence"), IMPOSSIBLE)
def test_what_cannot_exist_is_refused(kind: type, values: dict[str, Any], sentence: str) -> None:
    with pytest.raises(LinkError, match=sentence) as caught:
        kind(**values)
    assert isinstance(caught.value, LabError)


probabilities = st.floats(0, 1)
times = st.floats(0, 1e6)
counts = st.integers(1, 10**9)
losses = (
    st.builds(PacketLoss, probability=probabilities)
    | st.builds(BitErrors, rate=probabilities)
    | st.builds(
        ErrorBursts, every_bits=st.integers(10**6, 10**9), length_bits=st.integers(1, 10**6)
    )
    | st.builds(GilbertElliott, p_good_to_bad=probabilities, p_bad_to_good=probabilities)
)
queues = st.builds(Queue, packets=st.none() | counts, bytes=st.none() | counts) | st.builds(
    Red, limit_packets=counts
)
events = st.builds(Outage, at_s=times, lasts_s=st.floats(0.1, 10), holds=st.booleans()) | st.builds(
    DelayStep, at_s=times, delay_s=times
)
ways = st.builds(
    Way,
    rate_bps=st.floats(1, 1e12),
    delay_s=times,
    queue=queues,
    loss=st.none() | losses,
    events=st.lists(events, max_size=4).map(tuple),
    delayed_acks=st.booleans(),
)
specs = st.builds(
    LinkSpec,
    name=st.text(min_size=1),
    forward=ways,
    backward=ways,
    mtu=st.integers(68, 65535),
    seed=st.integers(),
    source=st.text(),
)


@settings(deadline=None)
@given(specs)
def test_a_link_survives_json(spec: LinkSpec) -> None:
    assert LinkSpec.from_json(json.loads(json.dumps(spec.to_json()))) == spec


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"format": 99}, "format 99"),
        ({"forward": None}, "a way there"),
        ({"colour": "red"}, "LinkSpec has no colour"),
        ({"forward": {"loss": {"kind": "Sorrow"}}}, "'Sorrow' is no part of a link"),
        ({"forward": {"loss": {"kind": "PacketLoss"}}}, "PacketLoss is not complete"),
        ({"forward": {"events": 3}}, "events are a list"),
        ({"forward": {"rate_bps": 0}}, "carries nothing"),
    ],
)
def test_json_of_anything_else_is_refused(change: dict[str, Any], sentence: str) -> None:
    with pytest.raises(LinkError, match=sentence):
        LinkSpec.from_json({**link_presets.acts_t1().to_json(), **change})


@pytest.mark.parametrize(
    ("spec", "forward_bps", "backward_bps", "rtt_s"),
    [
        (link_presets.acts_t1(), 1.536e6, 1.536e6, 0.56),
        (link_presets.half_t1(), 768e3, 768e3, 0.58),
        (link_presets.italsat(), 2e6, 2e6, 0.52),
        (link_presets.henderson_bottleneck(), 1.5e6, 1.5e6, 0.005),
        (link_presets.adalr_satellite(), 2.048e6, 256e3, 0.5),
        (link_presets.adalr_wide_satellite(), 10e6, 1e6, 0.5),
        (link_presets.hts_geo(), 50e6, 5e6, 0.6),
        (link_presets.leo(), 200e6, 20e6, 0.04),
    ],
    ids=lambda value: value.name if isinstance(value, LinkSpec) else "",
)
def test_presets_are_the_published_links(
    spec: LinkSpec, forward_bps: float, backward_bps: float, rtt_s: float
) -> None:
    assert (spec.forward.rate_bps, spec.backward.rate_bps) == (forward_bps, backward_bps)
    assert spec.rtt_s == pytest.approx(rtt_s)
    assert spec.source


def test_presets_take_queue_and_loss() -> None:
    spec = link_presets.acts_t1(Queue(packets=9), loss=ErrorBursts(every_bits=100, length_bits=9))
    assert spec.forward.queue == Queue(packets=9)
    assert spec.forward.loss == spec.backward.loss == ErrorBursts(every_bits=100, length_bits=9)


def test_a_queue_of_one_bdp_is_the_default_of_todays_links() -> None:
    spec = link_presets.hts_geo()
    assert spec.bdp_bytes == 3_750_000
    assert spec.forward.queue == Queue(bytes=3_750_000)


def test_the_mean_loss_of_gilbert_and_elliott() -> None:
    assert GilbertElliott(p_good_to_bad=0.01, p_bad_to_good=0.09).mean_loss == pytest.approx(0.1)
    assert GilbertElliott(p_good_to_bad=0, p_bad_to_good=0, loss_good=0.2).mean_loss == 0.2
