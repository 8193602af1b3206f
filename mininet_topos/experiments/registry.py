"""The experiments, found by the names of their files: a1.py … f5.py."""

from __future__ import annotations

import difflib
import importlib
import pkgutil
import re
from collections.abc import Sequence
from functools import cache

from ..errors import ExperimentError
from . import __path__ as _package_path
from .spec import Experiment

_ROW = re.compile(r"([a-f])([1-9][0-9]?)")


@cache
def experiments() -> dict[str, Experiment]:
    """Give every experiment by name, in the order of the rows."""
    names = [module.name for module in pkgutil.iter_modules(_package_path)]
    rows = sorted(
        (match for match in map(_ROW.fullmatch, names) if match),
        key=lambda match: (match[1], int(match[2])),
    )
    found = {}
    for row in rows:
        module = importlib.import_module(f"{__package__}.{row[0]}")
        experiment: Experiment = module.EXPERIMENT
        if experiment.name != row[0].upper():
            raise ExperimentError(f"{row[0]}.py holds the experiment {experiment.name}")
        found[experiment.name] = experiment
    return found


def chosen(names: Sequence[str]) -> list[Experiment]:
    """Give experiments by name; a letter means its whole chapter, `all` everything.

    Raises ExperimentError for names that there are not.
    """
    known = experiments()
    found: dict[str, Experiment] = {}
    for asked in names:
        name = asked.upper()
        if name == "ALL":
            matching = list(known)
        elif len(name) == 1:
            matching = [each for each in known if each.startswith(name)]
        else:
            matching = [each for each in known if each == name]
        if not matching:
            near = difflib.get_close_matches(name, known, n=3, cutoff=0.4)
            hint = f"did you mean {' or '.join(near)}?" if near else "see `xftp-lab list`"
            raise ExperimentError(f"there is no experiment {asked}: {hint}")
        found.update({each: known[each] for each in matching})
    return list(found.values())
