"""What happens at the moment of each fault."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Awaitable, Callable

from .damage import Damage
from .relay import Line
from .scenario import Scenario
from .stage import NAME, Stage

Happening = Callable[[Stage, Line], Awaitable[None] | None]

DAMAGES = frozenset(
    {"duplicate", "reorder", "lose", "out-of-range", "renumber", "insert", "flip", "truncate"}
)


def damage_of(stage: Stage) -> Damage | None:
    """Give what is done to records in this run."""
    scenario, chance = stage.scenario, stage.chance
    how, _, many = scenario.fault.partition("-")
    if scenario.fault == "out-of-range":
        how, many = scenario.fault, ""
    if how not in DAMAGES or scenario.fault == "flip-backwards":
        return None
    times = chance.randint(1, 5)
    if how == "truncate":
        times = scenario.connections if many == "all" else 1
    return Damage(how, scenario.size if scenario.is_framed else None, chance, times)


def happening(scenario: Scenario) -> Happening:
    """Give what happens at the moment of a run."""
    word, _, detail = scenario.fault.partition("-")
    if scenario.fault in _HAPPENINGS:
        return _HAPPENINGS[scenario.fault]
    if (word in DAMAGES or scenario.fault in DAMAGES) and scenario.fault != "flip-backwards":
        return _arm
    if word in _SIGNALS:
        number = _SIGNALS[word]
        return lambda stage, _: _send(stage, detail, number)
    return lambda stage, line: None  # the program has its harm in itself, or the relay sees to it


def _send(stage: Stage, who: str, number: signal.Signals) -> None:
    program = stage.client if who == "client" else stage.daemon
    assert program is not None
    program.send_signal(number)
    if number == signal.SIGSTOP:
        stage.later(_continue(stage, who))


async def _continue(stage: Stage, who: str) -> None:
    await asyncio.sleep(stage.chance.uniform(0.5, 4.0))
    _send(stage, who, signal.SIGCONT)


_SIGNALS = {
    "kill": signal.SIGKILL,
    "terminate": signal.SIGTERM,
    "suspend": signal.SIGSTOP,
    "clock": signal.SIGUSR1,
}


def _arm(stage: Stage, _: Line) -> None:
    assert stage.damage is not None
    stage.damage.is_armed = True


# -- the network --------------------------------------------------------------------------------


def _lines(stage: Stage, *, is_data: bool) -> list[Line]:
    assert stage.relay is not None
    return stage.relay.open_lines(is_data=is_data)


def _reset_one(_: Stage, line: Line) -> None:
    line.reset()


def _reset_all(stage: Stage, _: Line) -> None:
    for each in _lines(stage, is_data=True):
        each.reset()


def _silence_one(_: Stage, line: Line) -> None:
    line.silence()


def _silence_all(stage: Stage, _: Line) -> None:
    assert stage.relay is not None
    stage.relay.silence(control=False)


def _reset_control(stage: Stage, _: Line) -> None:
    for each in _lines(stage, is_data=False):
        each.reset()


def _close_control(stage: Stage, _: Line) -> None:
    for each in _lines(stage, is_data=False):
        each.close()


def _silence_control(stage: Stage, _: Line) -> None:
    for each in _lines(stage, is_data=False):
        each.silence()


def _outage(control: bool, shortest_s: float, longest_s: float) -> Happening:
    def begin(stage: Stage, _: Line) -> None:
        assert stage.relay is not None
        stage.relay.silence(control=control)
        stage.later(_end_outage(stage, stage.chance.uniform(shortest_s, longest_s)))

    return begin


async def _end_outage(stage: Stage, after_s: float) -> None:
    await asyncio.sleep(after_s)
    assert stage.relay is not None
    stage.relay.resume()


# -- the files ----------------------------------------------------------------------------------


def _grow(stage: Stage, _: Line) -> None:
    more = stage.chance.randbytes(stage.chance.randrange(1, 100_000))
    with stage.source.open("ab") as file:
        file.write(more)
    stage.versions.append(stage.versions[-1] + more)


def _shrink(stage: Stage, _: Line) -> None:
    size = stage.chance.randrange(max(1, stage.scenario.size))
    os.truncate(stage.source, size)
    stage.versions.append(stage.versions[-1][:size])


def _vanish(stage: Stage, _: Line) -> None:
    stage.source.unlink()


def _replace(stage: Stage, _: Line) -> None:
    """Another file of that name; every other time of the same size, and no younger."""
    is_alike = stage.chance.random() < 0.5
    size = stage.scenario.size if is_alike else stage.chance.randrange(2 * stage.scenario.size + 1)
    content = stage.chance.randbytes(size)
    beside = stage.source.with_name("new")
    beside.write_bytes(content)
    if is_alike:
        status = stage.source.stat()
        os.utime(beside, ns=(status.st_atime_ns, status.st_mtime_ns))
    beside.replace(stage.source)
    stage.versions.append(content)


def _rewrite(stage: Stage, _: Line) -> None:
    """Other bytes in the same file, which stays as long as it is."""
    content = bytearray(stage.versions[-1])
    start = stage.chance.randrange(len(content) + 1)
    piece = stage.chance.randbytes(min(stage.chance.randrange(1, 50_000), len(content) - start))
    content[start : start + len(piece)] = piece
    with stage.source.open("r+b") as file:
        file.seek(start)
        file.write(piece)
    stage.versions.append(bytes(content))


def _remove_part(stage: Stage, _: Line) -> None:
    (stage.target_directory / f"{NAME}.xftp.part").unlink(missing_ok=True)


def _let_target_appear(stage: Stage, _: Line) -> None:
    (stage.target_directory / NAME).write_bytes(b"somebody else's")


_HAPPENINGS: dict[str, Happening] = {
    "reset-one": _reset_one,
    "reset-all": _reset_all,
    "silent-one": _silence_one,
    "silent-all": _silence_all,
    "outage-data": _outage(False, 1.0, 4.0),
    "outage-all": _outage(True, 1.0, 4.0),
    "outage-30s": _outage(True, 30.0, 31.0),
    "control-reset": _reset_control,
    "control-closed": _close_control,
    "control-silent": _silence_control,
    "source-grows": _grow,
    "source-shrinks": _shrink,
    "source-vanishes": _vanish,
    "source-replaced": _replace,
    "source-rewritten": _rewrite,
    "part-removed": _remove_part,
    "target-appears": _let_target_appear,
}
