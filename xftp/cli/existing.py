"""What happens to a file that is there already, when nobody chose beforehand."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from xftp.client.existing import ExistsError
from xftp.client.options import Existing

from .terminal import ask_choice, can_ask

CHOICES = {"y": "yes", "n": "no", "r": "resume"}
CHOICES_OF_SEVERAL = CHOICES | {"a": "all", "s": "skip all"}
_MEANING: dict[str, Existing] = {"y": "overwrite", "n": "skip", "r": "resume"}
_MEANING_FOR_ALL: dict[str, Existing] = {"a": "overwrite", "s": "skip"}

Chooser = Callable[[str, ExistsError], Existing]
"""Says what is to be done with a file that is there: its name, and the error that told of it."""


def choose(name: str, error: ExistsError) -> Existing:
    """Ask the person what to do with `name`. Raises ExistsError where nobody can be asked."""
    if not can_ask():
        raise refusal(name) from error
    return _MEANING[_ask(name, CHOICES)]


class SeveralChoices:
    """Asks, as `choose` does, for one file after the other, until the answer is for all of them."""

    def __init__(self) -> None:
        self._for_all: Existing | None = None

    def __call__(self, name: str, error: ExistsError) -> Existing:
        """Give what to do with `name`. Raises ExistsError where nobody can be asked."""
        if self._for_all is not None:
            return self._for_all
        if not can_ask():
            raise refusal(name) from error
        answer = _ask(name, CHOICES_OF_SEVERAL)
        self._for_all = _MEANING_FOR_ALL.get(answer)
        return self._for_all or _MEANING[answer]


def _ask(name: str, choices: Mapping[str, str]) -> str:
    return ask_choice(f"{name} is already there. Overwrite?", choices)


def refusal(name: str) -> ExistsError:
    """Make the error that says which options would decide."""
    return ExistsError(f"{name}: already there; choose --overwrite, --resume or --skip")
