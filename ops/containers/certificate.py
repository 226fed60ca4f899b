"""A certificate for the proxy before Spark Connect."""

from __future__ import annotations

import datetime
import ipaddress
import os
from pathlib import Path


def make_certificate(folder: Path) -> bool:
    """Make spark.pem, a certificate with its key, and ca.crt, by which clients check it; return whether it was made.

    Both stay if they are there. The authority's key is kept nowhere: without the files there is another authority.

    Raises:
        OSError: if the folder cannot be written.
    """
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec
    from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

    served, authority = folder / "spark.pem", folder / "ca.crt"
    if served.exists() and authority.exists():
        return False

    def named(name: str) -> x509.Name:
        return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])

    def certificate(of: str, key: ec.EllipticCurvePublicKey) -> x509.CertificateBuilder:
        now = datetime.datetime.now(datetime.UTC)
        return (
            x509.CertificateBuilder()
            .subject_name(named(of))
            .issuer_name(named("Clickmill's own authority"))
            .public_key(key)
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - datetime.timedelta(days=1))
            .not_valid_after(now + datetime.timedelta(days=3650))
        )

    signer, key = ec.generate_private_key(ec.SECP256R1()), ec.generate_private_key(ec.SECP256R1())
    own = certificate("Clickmill's own authority", signer.public_key()).add_extension(
        x509.BasicConstraints(ca=True, path_length=0), critical=True
    )
    names = [x509.DNSName("spark-tls"), x509.DNSName("localhost"), x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]
    authority_id = x509.SubjectKeyIdentifier.from_public_key(signer.public_key())
    own = own.add_extension(authority_id, critical=False)
    own = own.add_extension(x509.KeyUsage(False, False, False, False, False, True, True, False, False), critical=True)
    leaf = certificate("spark-tls", key.public_key()).add_extension(x509.SubjectAlternativeName(names), critical=False)
    leaf = leaf.add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
    leaf = leaf.add_extension(
        x509.AuthorityKeyIdentifier.from_issuer_subject_key_identifier(authority_id), critical=False
    )
    pem = serialization.Encoding.PEM
    private = key.private_bytes(pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    with os.fdopen(os.open(served, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as stream:
        stream.write(leaf.sign(signer, hashes.SHA256()).public_bytes(pem) + private)
    authority.write_bytes(own.sign(signer, hashes.SHA256()).public_bytes(pem))
    return True
