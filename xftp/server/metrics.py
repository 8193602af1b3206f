"""Metrics for Prometheus, over HTTP on an address of the operator's choice.

Needs the package prometheus-client (`pip install 'xftp[metrics]'`).
"""

from __future__ import annotations

import asyncio
import importlib
from collections.abc import Iterator, Sequence
from types import ModuleType
from typing import Any

from xftp.errors import XftpError

from .server import Server
from .status import snapshot

_SNAPSHOT_TIMEOUT_S = 10.0


class MetricsError(XftpError):
    """The metrics cannot be served."""


def _library(name: str) -> ModuleType:
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise MetricsError(
            "metrics need the package prometheus-client: pip install 'xftp[metrics]'"
        ) from error


class _Collector:
    """Turns a snapshot into metrics whenever one is asked for, in the asking thread."""

    def __init__(self, server: Server, loop: asyncio.AbstractEventLoop) -> None:
        self._server = server
        self._loop = loop
        self._core = _library("prometheus_client.core")

    def collect(self) -> Iterator[Any]:
        """Give the metrics of one moment: the snapshot is taken in the loop's thread."""
        asked = asyncio.run_coroutine_threadsafe(self._snapshot(), self._loop)
        now = asked.result(_SNAPSHOT_TIMEOUT_S)
        yield self._one("start_time_seconds", "Unix time of the start", now["started_at"])
        yield self._one("up", "0 once it is asked to stop", 0 if now["is_stopping"] else 1)
        for kind, count in now["now"].items():
            yield self._one(kind, f"{kind.replace('_', ' ').capitalize()} at this moment", count)
        yield self._counter(
            "sessions", "Control connections served", [], [((), now["sessions_total"])]
        )
        yield self._counter(
            "refused", "What there was no place for", ["what"], _pairs(now["refused"])
        )
        yield self._counter("logins", "Logins tried", ["outcome"], _pairs(now["logins"]))
        yield self._counter(
            "bytes", "Bytes of files and listings", ["direction"], _pairs(now["bytes_total"])
        )
        transfers = [
            ((each["direction"], "ok" if each["ok"] else "failed"), each["count"])
            for each in now["transfers_total"]
        ]
        yield self._counter("transfers", "Transfers ended", ["direction", "outcome"], transfers)

    async def _snapshot(self) -> dict[str, Any]:
        return snapshot(self._server)

    def _one(self, name: str, text: str, value: float) -> Any:
        return self._core.GaugeMetricFamily(f"xftpd_{name}", text, value=value)

    def _counter(
        self,
        name: str,
        text: str,
        labels: list[str],
        values: Sequence[tuple[tuple[str, ...], float]],
    ) -> Any:
        family = self._core.CounterMetricFamily(f"xftpd_{name}", text, labels=labels)
        for given, value in values:
            family.add_metric(list(given), value)
        return family


def _pairs(values: dict[str, int]) -> list[tuple[tuple[str, ...], float]]:
    return [((name,), value) for name, value in values.items()]


class MetricsServer:
    """Serves the metrics over HTTP, in a thread of its own."""

    def __init__(self, server: Server, host: str, port: int) -> None:
        """Begin to serve; call from the event loop. Raises MetricsError."""
        library = _library("prometheus_client")
        registry = library.CollectorRegistry()
        registry.register(_OnDemand(_Collector(server, asyncio.get_running_loop())))
        try:
            self._http, self._thread = library.start_http_server(port, host, registry)
        except OSError as error:
            raise MetricsError(f"metrics cannot be served on {host}:{port}: {error}") from error

    @property
    def port(self) -> int:
        """The port it listens on."""
        return int(self._http.server_port)

    async def stop(self) -> None:
        """Serve no more."""
        await asyncio.get_running_loop().run_in_executor(None, self._http.shutdown)
        self._http.server_close()
        self._thread.join()


class _OnDemand:
    """A collector that is not asked for its names when it is registered."""

    def __init__(self, collector: _Collector) -> None:
        self.collect = collector.collect

    def describe(self) -> list[Any]:
        """Give nothing: the names are known when they are asked for."""
        return []
