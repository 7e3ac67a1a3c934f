"""Certificates for tests of TLS, made by the `openssl` command."""

import shutil
import ssl
import subprocess


def available():
    return shutil.which("openssl") is not None


def openssl(*words):
    subprocess.run(["openssl", *map(str, words)], check=True, capture_output=True)


class Authority:
    """A root that issues certificates, as files of a folder."""

    def __init__(self, folder, name="root"):
        self.folder, self.name = folder, name
        self.pem, self.key = folder / f"{name}.pem", folder / f"{name}.key"
        new_key = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes")
        openssl("req", "-x509", *new_key, "-keyout", self.key, "-out", self.pem, "-days", 30, "-subj", f"/CN={name}")

    def issue(self, name, kind="ec", days=30):
        """A certificate and its key."""
        pem, key, request, extensions = (self.folder / f"{name}.{end}" for end in ("pem", "key", "csr", "ext"))
        options = {"ec": ("-pkeyopt", "ec_paramgen_curve:P-256"), "rsa": ("-pkeyopt", "rsa_keygen_bits:2048")}[kind]
        openssl("genpkey", "-algorithm", kind.upper(), *options, "-out", key)
        openssl("req", "-new", "-key", key, "-out", request, "-subj", f"/O=Test/CN={name}")
        extensions.write_text("subjectAltName=DNS:localhost,IP:127.0.0.1\n")
        sign = ("-CA", self.pem, "-CAkey", self.key, "-CAcreateserial", "-extfile", extensions)
        openssl("x509", "-req", "-in", request, *sign, "-days", days, "-out", pem)
        return pem, key

    def context(self, shows=None):
        """What a client in Python brings along that trusts this root. It shows a certificate, if it is given the paths of one and its key."""
        context = ssl.create_default_context(cafile=self.pem)
        if shows is not None:
            context.load_cert_chain(*shows)
        return context


def flags(issued, *more):
    """The flags of a server with a certificate, which `issue` returned."""
    certificate, key = issued
    return "-Z", "-o", ",".join((f"ssl_chain_cert={certificate},ssl_key={key}", *more))
