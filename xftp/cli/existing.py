"""What happens to a file that is there already, when nobody chose beforehand."""

from __future__ import annotations

from xftp.client.existing import ExistsError
from xftp.client.options import Existing

from .terminal import ask_choice, can_ask

CHOICES = {"y": "yes", "n": "no", "r": "resume"}
_MEANING: dict[str, Existing] = {"y": "overwrite", "n": "skip", "r": "resume"}


def choose(name: str, error: ExistsError) -> Existing:
    """Ask the person what to do with `name`. Raises ExistsError where nobody can be asked."""
    if not can_ask():
        raise refusal(name) from error
    return _MEANING[ask_choice(f"{name} is already there. Overwrite?", CHOICES)]


def refusal(name: str) -> ExistsError:
    """Make the error that says which options would decide."""
    return ExistsError(f"{name}: already there; choose --overwrite, --resume or --skip")
