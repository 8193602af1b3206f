"""Listing, choosing, parameters, and what is said when something is missing."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from tuning import congestion
from tuning.bpf import host, libbpf
from tuning.congestion import ALGORITHMS, CongestionError, ParameterMap, Parameters, choose
from tuning.errors import TuningError

from .bpf_support import needs_bpf

ROOT = Path(__file__).parents[2]


def run(*arguments: str, user: str = "") -> subprocess.CompletedProcess[str]:
    """Run `python -m tuning`, as another user if asked."""
    drop = "os.setgid(65534); os.setuid(65534)" if user else ""
    code = f"""
import os, sys
from tuning.__main__ import main
{drop}
sys.exit(main({list(arguments)!r}))
"""
    return subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, timeout=60
    )


# -- without root -----------------------------------------------------------------------------


def test_every_algorithm_has_a_source_and_an_object() -> None:
    assert set(congestion.names()) == set(ALGORITHMS)
    for name in ALGORITHMS:
        assert len(name) <= 15
        assert (host.OBJECTS / f"{name}.bpf.o").stat().st_size < 50_000


def test_lists_what_the_kernel_has() -> None:
    assert "reno" in congestion.available()
    assert set(congestion.allowed()) & set(congestion.available())
    done = run("list")
    assert done.returncode == 0
    assert {line.split()[0] for line in done.stdout.splitlines()} >= {"reno", *ALGORITHMS}


def test_the_kernels_own_can_be_chosen() -> None:
    with socket.socket() as sock:
        choose(sock, "reno")
        assert congestion.chosen(sock) == "reno"


@pytest.mark.parametrize("name", ["nosuch", "", "a_name_that_is_too_long", "réno"])
def test_an_unknown_name_is_answered_with_those_there_are(name: str) -> None:
    with socket.socket() as sock, pytest.raises(CongestionError, match=r"choose from .*reno"):
        choose(sock, name)


@pytest.mark.parametrize(
    ("name", "told", "sentence"),
    [
        ("reno", Parameters(initial_window_segments=4), "reno takes no parameters"),
        ("xftp_abc", Parameters(k=4), "xftp_abc has no parameter k"),
        ("xftp_kack", Parameters(c=4), "xftp_kack has no parameter c"),
        ("nosuch", Parameters(c=4), "choose from"),
    ],
)
def test_parameters_that_the_algorithm_does_not_take(
    name: str, told: Parameters, sentence: str
) -> None:
    with socket.socket() as sock, pytest.raises(CongestionError, match=sentence):
        choose(sock, name, told)


@pytest.mark.parametrize(
    "values",
    [
        {"initial_window_segments": 0},
        {"initial_window_segments": -1},
        {"initial_window_segments": 65_536},
        {"initial_window_segments": 2.5},
        {"initial_window_segments": "4"},
        {"ssthresh_segments": 1},
        {"k": 0},
        {"thr_segments": 0},
        {"c": 0},
        {"reference_rtt_s": 0.0},
        {"reference_rtt_s": float("nan")},
        {"rate_bps": 0},
        {"rate_bps": float("inf")},
        {"ssthresh_from_rate": True},
    ],
)
def test_parameters_that_cannot_be_meant(values: dict[str, object]) -> None:
    with pytest.raises(TuningError):
        Parameters(**values)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "told",
    [
        Parameters(),
        Parameters(initial_window_segments=1),
        Parameters(initial_window_segments=65_535, ssthresh_segments=2, k=10, c=1600),
        Parameters(thr_segments=50, reference_rtt_s=0.025, rate_bps=1.536e6),
        Parameters(rate_bps=1e13, ssthresh_from_rate=True),
    ],
)
def test_parameters_survive_the_kernels_layout(told: Parameters) -> None:
    packed = told.pack()
    assert len(packed) == 40
    assert Parameters.unpack(packed) == told


def test_a_map_that_is_not_there() -> None:
    with pytest.raises(CongestionError, match="python -m tuning load"):
        ParameterMap(Path("/sys/fs/bpf/xftp/nosuch"))


def test_not_root(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    for change in (congestion.load, congestion.unload):
        with pytest.raises(CongestionError, match="`python -m tuning load` as root"):
            change()


def test_the_command_line_says_what_is_wrong() -> None:
    assert run("load", "nosuch").returncode == 1
    assert "no algorithm of this package" in run("load", "nosuch").stderr
    assert run("nosuch").returncode == 2
    if os.geteuid() == 0:
        refused = run("load", user="nobody")
        assert refused.returncode == 1
        assert "root" in refused.stderr


# -- as root ----------------------------------------------------------------------------------


@pytest.mark.usefixtures("loaded_algorithms")
class TestLoaded:
    pytestmark = needs_bpf

    def test_everyone_may_choose_them(self) -> None:
        assert set(ALGORITHMS) <= set(congestion.available())
        assert set(ALGORITHMS) <= set(congestion.allowed())
        assert congestion.is_loaded("xftp_abc")

    def test_loading_again_changes_nothing(self) -> None:
        assert congestion.load() == ()

    def test_a_nested_use_leaves_them(self) -> None:
        with congestion.loaded(["xftp_abc"]):
            assert congestion.is_loaded("xftp_abc")
        assert congestion.is_loaded("xftp_abc")

    def test_a_socket_that_is_closed(self) -> None:
        sock = socket.socket()
        with ParameterMap() as opened:
            sock.close()
            with pytest.raises(CongestionError, match="takes no parameters"):
                opened.set(sock, Parameters(k=2))

    def test_a_closed_map(self) -> None:
        opened = ParameterMap()
        opened.close()
        opened.close()
        with socket.socket() as sock, pytest.raises(CongestionError):
            opened.set(sock, Parameters(k=2))


class TestTrouble:
    """What may be missing, each in a directory of its own under a name that nobody else uses."""

    pytestmark = needs_bpf

    @pytest.fixture(autouse=True)
    def elsewhere(
        self, loaded_algorithms: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Pins under /sys/fs/bpf/xftp-test-PID, one algorithm with a name of this process."""
        pins = host.BPF_FILE_SYSTEM / f"xftp-test-{os.getpid()}"
        self.pins, self.objects = pins, tmp_path
        # As long as "xftp_abc", which it replaces in the object.
        self.name = name = f"x{os.getpid() % 10**7:07}"
        original = (host.OBJECTS / "xftp_abc.bpf.o").read_bytes()
        self.object = tmp_path / f"{name}.bpf.o"
        self.object.write_bytes(original.replace(b"xftp_abc", name.encode()))
        monkeypatch.setattr(host, "names", lambda: (name,))
        monkeypatch.setattr(host, "OBJECTS", tmp_path)
        monkeypatch.setattr(host, "PINS", pins)
        monkeypatch.setattr(host, "PARAMETERS_PIN", pins / "parameters")
        monkeypatch.setattr(host, "_MOUNTED", pins / "mounted")
        monkeypatch.setattr(host, "_TEMPORARY", pins / "temporary")

    def refused(self, sentence: str) -> None:
        with pytest.raises(CongestionError, match=sentence):
            host.load()
        assert not self.pins.exists(), "something was left behind"
        assert not host.is_loaded(self.name)

    def test_load_and_unload(self) -> None:
        assert host.load() == (self.name,)
        assert host.is_loaded(self.name)
        with socket.socket() as sock:
            choose(sock, self.name)
            assert host.unload() == (self.name,)
            assert congestion.chosen(sock) == self.name
            assert not host.is_loaded(self.name)
        assert not self.pins.exists()
        assert host.unload() == ()

    def test_a_with_statement_unloads_after_an_error(self) -> None:
        with pytest.raises(ZeroDivisionError), host.loaded():
            assert host.is_loaded(self.name)
            raise ZeroDivisionError
        assert not host.is_loaded(self.name)
        assert not self.pins.exists()

    def test_a_with_statement_leaves_what_was_there(self) -> None:
        host.load()
        with host.loaded():
            pass
        assert host.is_loaded(self.name)
        host.unload()

    def test_no_object(self) -> None:
        self.object.unlink()
        self.refused("run `make bpf`")

    def test_an_object_that_is_none(self) -> None:
        self.object.write_bytes(b"no ELF file at all")
        self.refused("refused at reading the object")

    def test_no_libbpf(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(libbpf, "_LIBRARY", "libnosuch.so.1")
        self.refused("apt-get install libbpf1")

    def test_no_kernel_types(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(host, "KERNEL_TYPES", Path("/nosuch"))
        self.refused("CONFIG_DEBUG_INFO_BTF=y")

    def test_no_bpf_file_system(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(host, "BPF_FILE_SYSTEM", Path("/nosuch"))
        self.refused("CONFIG_BPF_SYSCALL=y")

    def test_a_kernel_without_struct_ops(self) -> None:
        """A structure of that name is what the loader looks for in the kernel's types."""
        content = self.object.read_bytes()
        self.object.write_bytes(content.replace(b"tcp_congestion_ops", b"tcp_congestion_opz"))
        self.refused("Linux 5.6")

    def test_a_map_of_another_layout(self) -> None:
        host.load()
        parameters = host.PARAMETERS_PIN
        parameters.unlink()
        os.link(self.pins / self.name, parameters)
        with pytest.raises(CongestionError, match="another version"):
            ParameterMap(parameters)
        host.unload()
        assert not self.pins.exists()

    def test_registered_by_somebody_else(self) -> None:
        host.load()
        registered = self.pins / self.name
        registered.rename(self.pins / "elsewhere")
        with pytest.raises(CongestionError, match="not by this package"):
            host.load()
        assert host.unload() == ("elsewhere",)
        assert not host.is_loaded(self.name)
        assert not self.pins.exists()

    def test_mounts_and_unmounts(self) -> None:
        """In a mount namespace of its own, where /sys/fs/bpf is not mounted."""
        script = f"""
import subprocess
from pathlib import Path
from tuning.bpf import host
while host._is_bpf_file_system():
    subprocess.run(["umount", "/sys/fs/bpf"], check=True)
host.names = lambda: ({self.name!r},)
host.OBJECTS = Path({str(self.objects)!r})
assert host.load() == ({self.name!r},)
assert host._is_bpf_file_system()
assert host.PARAMETERS_PIN.stat().st_mode & 0o777 == 0o666
assert host.unload() == ({self.name!r},)
assert not host._is_bpf_file_system()
"""
        if subprocess.run(["unshare", "--mount", "true"], capture_output=True).returncode:
            pytest.skip("no mount namespace of its own can be had here, as in a chroot")
        subprocess.run(
            ["unshare", "--mount", sys.executable, "-c", script],
            cwd=ROOT,
            check=True,
            timeout=60,
        )
