"""What is read of a machine."""

from __future__ import annotations

import gzip

from tests.cli.made_up import Make


def test_the_configuration_of_a_running_kernel_is_read_compressed(make: Make) -> None:
    config = gzip.compress(b"CONFIG_NET=y\nCONFIG_NET_SCH_NETEM=m\n")
    machine = make({"proc/config.gz": config, "boot/config-6.18.0-test": "CONFIG_NET=n\n"})
    options = ("CONFIG_NET", "CONFIG_NET_SCH_NETEM", "CONFIG_NET_SCH")
    assert [machine.kernel_option(name) for name in options] == ["y", "m", "n"]
    assert make({"proc/config.gz": b"\x1f\x8b"}).kernel_option("CONFIG_NET") == "n"
