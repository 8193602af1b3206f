"""A certificate for one run, and the options that use it."""

from __future__ import annotations

from pathlib import Path

import trustme


def tls_options(directory: Path, host: str) -> tuple[list[str], list[str]]:
    """Make a certificate for `host`; give the options of xftpd, and those of xftp."""
    authority = trustme.CA()
    certificate = authority.issue_cert(host)
    cert, key, trusted = (directory / name for name in ("cert.pem", "key.pem", "ca.pem"))
    cert.write_bytes(b"".join(blob.bytes() for blob in certificate.cert_chain_pems))
    certificate.private_key_pem.write_to_path(key)
    authority.cert_pem.write_to_path(trusted)
    return ["--tls-cert", str(cert), "--tls-key", str(key)], ["--cacert", str(trusted)]
