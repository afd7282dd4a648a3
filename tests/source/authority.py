"""Create a certificate authority and certificates for a test."""

import subprocess
from dataclasses import dataclass
from pathlib import Path

RSA = ("-newkey", "rsa:2048")
EC = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1")


@dataclass(frozen=True)
class Authority:
    """Signs certificates, with its files in ``folder``."""

    folder: Path
    name: str

    @property
    def certificate(self) -> Path:
        """Return the certificate to trust."""
        return self.folder / f"{self.name}.crt"

    def signed(
        self, name: str, *, key: tuple[str, ...] = RSA, alternative: str = "", days: int = 2
    ) -> Path:
        """Create and return a certificate for ``name``; its key is beside it.

        With negative ``days`` it has expired.
        """
        request, certificate = self.folder / f"{name}.csr", self.folder / f"{name}.crt"
        new_key = ["-nodes", *key, "-keyout", str(certificate.with_suffix(".key"))]
        openssl("req", *new_key, "-subj", f"/CN={name}", "-out", str(request))
        extensions = self.folder / f"{name}.ext"
        extensions.write_text(f"subjectAltName = {alternative}\n" if alternative else "")
        ours = ["-CA", str(self.certificate), "-CAkey", str(self.certificate.with_suffix(".key"))]
        files = ["-in", str(request), "-out", str(certificate), "-extfile", str(extensions)]
        openssl("x509", "-req", "-days", str(days), "-CAcreateserial", *ours, *files)
        certificate.with_suffix(".key").chmod(0o600)
        return certificate


def authority(folder: Path, name: str) -> Authority:
    """Create a certificate authority with a self-signed certificate."""
    created = Authority(folder, name)
    files = ["-keyout", str(folder / f"{name}.key"), "-out", str(created.certificate)]
    openssl("req", "-x509", "-nodes", *RSA, "-days", "2", "-subj", f"/CN={name}", *files)
    return created


def openssl(*arguments: str) -> None:
    """Run openssl; raise CalledProcessError if it fails."""
    subprocess.run(["openssl", *arguments], check=True, capture_output=True)
