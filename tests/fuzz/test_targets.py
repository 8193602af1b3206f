"""The targets of the fuzzer, with what is kept of its inputs and what hypothesis makes of them."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from .targets import CORPUS, TARGETS, Target

_BITS = (b"", b"\0", b"\xff", b"\r\n", b"\n", b" ", b";", b"=", b",", b"|", b"0", b"99999999999")
"""What is put in place of a part of an input."""


@st.composite
def varied(draw: st.DrawFn, corpus: list[bytes]) -> bytes:
    """Take an input that is kept, and change up to four places of it."""
    data = bytearray(draw(st.sampled_from(corpus)))
    for _ in range(draw(st.integers(0, 4))):
        at = draw(st.integers(0, len(data)))
        end = min(len(data), at + draw(st.integers(0, 6)))
        other = draw(st.one_of(st.sampled_from(_BITS), st.binary(max_size=4), _slices(data)))
        data[at:end] = other
    return bytes(data)


def _slices(data: bytearray) -> st.SearchStrategy[bytes]:
    """Give any part of `data`, to be put elsewhere."""
    here = bytes(data)
    places = st.tuples(st.integers(0, len(here)), st.integers(0, len(here)))
    return places.map(lambda ends: here[min(ends) : max(ends)])


@pytest.mark.parametrize("target", TARGETS.values(), ids=list(TARGETS))
def test_what_is_kept(target: Target) -> None:
    corpus = target.corpus()
    assert corpus
    for data in corpus:
        target.check(data)


@pytest.mark.parametrize("target", TARGETS.values(), ids=list(TARGETS))
def test_what_is_made_up(target: Target) -> None:
    inputs = st.one_of(varied(target.corpus()), st.binary(max_size=target.most_bytes))

    @settings(max_examples=target.examples)
    @given(inputs)
    def holds(data: bytes) -> None:
        target.check(data)

    holds()


def test_every_kept_input_has_a_target() -> None:
    assert {path.name for path in CORPUS.iterdir()} == set(TARGETS)
