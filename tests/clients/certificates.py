"""Certificates for tests of TLS, made by the `openssl` command."""

import shutil
import ssl
import subprocess

NAMES = "subjectAltName=DNS:localhost,IP:127.0.0.1"
NEW_KEY = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes")


def openssl(*arguments, cwd):
    subprocess.run(["openssl", *arguments], cwd=cwd, check=True, stdin=subprocess.DEVNULL, capture_output=True)


def available():
    return shutil.which("openssl") is not None


class Authority:
    """An authority in a folder: `ca.pem`, and what it signs. `server.pem` and `server.key` are there from the beginning."""

    def __init__(self, folder, name="an authority"):
        self.folder = folder
        folder.mkdir(exist_ok=True)
        openssl("req", "-x509", *NEW_KEY, "-keyout", "ca.key", "-out", "ca.pem", "-subj", f"/CN={name}", "-days", "30", cwd=folder)
        self.ca = folder / "ca.pem"
        self.sign("server", "localhost")

    def sign(self, file, name):
        """A certificate and its key. Returns their paths."""
        openssl("req", *NEW_KEY, "-keyout", f"{file}.key", "-out", f"{file}.csr", "-subj", f"/CN={name}", cwd=self.folder)
        (self.folder / "names").write_text(NAMES + "\n")
        openssl(
            *("x509", "-req", "-in", f"{file}.csr", "-CA", "ca.pem", "-CAkey", "ca.key", "-CAcreateserial"),
            *("-out", f"{file}.pem", "-days", "30", "-extfile", "names"),
            cwd=self.folder,
        )
        return self.folder / f"{file}.pem", self.folder / f"{file}.key"

    def flags(self, *more):
        """The flags of a server with this certificate."""
        files = f"ssl_chain_cert={self.folder / 'server.pem'},ssl_key={self.folder / 'server.key'}"
        return "-Z", "-o", ",".join((files, *more))

    def context(self, certificate=None):
        """What a client in Python brings along; `certificate` is a pair of paths."""
        context = ssl.create_default_context(cafile=self.ca)
        if certificate is not None:
            context.load_cert_chain(*certificate)
        return context
