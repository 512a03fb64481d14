"""Certificates for tests, made by the openssl program; and one connection over TLS whose end can be looked at.

    authority = Authority(folder, "ours")
    server = authority.issue("server")                          # .certificate and .key, paths of PEM files
    old = authority.issue("old", begin=-40, end=-10)            # days from now
    locked = authority.issue("client", password="opensesame")
"""

import datetime
import os
import shutil
import socket
import ssl
import subprocess
import threading

CONFIG = """
[ca]
default_ca = ours
[ours]
new_certs_dir = {folder}
database = {folder}/{name}.index
serial = {folder}/{name}.serial
rand_serial = yes
unique_subject = no
default_md = sha256
policy = any
email_in_dn = no
[any]
commonName = supplied
"""


def is_here():
    return shutil.which("openssl") is not None


def _openssl(*arguments):
    subprocess.run(["openssl", *arguments], check=True, capture_output=True)


def _day(days):
    return (datetime.datetime.now(datetime.timezone.utc) + datetime.timedelta(days=days)).strftime("%Y%m%d%H%M%SZ")


class Pair:
    def __init__(self, certificate, key):
        self.certificate, self.key = certificate, key


class Authority:
    """One that signs certificates; its own stands in .certificate."""

    def __init__(self, folder, name):
        self.folder, self.name = folder, name
        self.certificate, self.key = self._path("pem"), self._path("key")
        self.config = self._path("conf")
        with open(self.config, "w") as config:
            config.write(CONFIG.format(folder=folder, name=name))
        open(self._path("index"), "w").close()
        _openssl("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "90", "-subj",
                 "/CN=" + name, "-keyout", self.key, "-out", self.certificate)

    def _path(self, suffix, name=None):
        return os.path.join(self.folder, "%s.%s" % (name or self.name, suffix))

    def issue(self, name, names="IP:127.0.0.1,DNS:localhost", begin=-1, end=90, password=None):
        """A certificate for NAMES, valid from BEGIN to END in days from now; its key is encrypted with PASSWORD."""
        name = "%s-%s" % (self.name, name)
        pair = Pair(self._path("pem", name), self._path("key", name))
        request, extensions = self._path("csr", name), self._path("ext", name)
        with open(extensions, "w") as out:
            out.write("subjectAltName = %s\nbasicConstraints = CA:FALSE\n" % names)
        secrecy = ["-passout", "pass:" + password] if password else ["-nodes"]
        _openssl("req", "-new", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", *secrecy, "-subj", "/CN=" + name,
                 "-keyout", pair.key, "-out", request)
        _openssl("ca", "-batch", "-notext", "-config", self.config, "-cert", self.certificate, "-keyfile", self.key, "-in",
                 request, "-out", pair.certificate, "-startdate", _day(begin), "-enddate", _day(end), "-extfile", extensions)
        os.chmod(pair.key, 0o600)
        return pair


def client_context(authority, pair=None):
    """What a client needs to trust AUTHORITY's certificates and to show PAIR."""
    context = ssl.create_default_context(cafile=authority.certificate)
    if pair:
        context.load_cert_chain(pair.certificate, pair.key)
    return context


class TlsSocket:
    """Stands for a connected socket, which one thread may read while another writes.  Python's own SSLSocket cannot end
    its output and go on reading, and does not tell how the peer ended: here .is_cut says that it did so without the alert
    that belongs there (RFC 8446, 6.1)."""

    def __init__(self, raw, context, name="127.0.0.1"):
        self.raw = raw
        self.state, self.order = threading.Lock(), threading.Lock()  # of the library; of what is written
        self.incoming, self.outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self.tls = context.wrap_bio(self.incoming, self.outgoing, server_hostname=name)
        self.is_cut = self.is_ended = False
        self._step(self.tls.do_handshake)

    def _call(self, call, *arguments):
        """CALL, and write what comes of it."""
        with self.order:
            try:
                with self.state:
                    return call(*arguments)
            finally:
                with self.state:
                    data = self.outgoing.read()
                if data:
                    self.raw.sendall(data)

    def _read(self, count):
        """A writer may be blocked for as long as nothing is read here."""
        with self.state:
            return self.tls.read(count)

    def _step(self, call, *arguments):
        while True:
            try:
                return call(*arguments) if call == self._read else self._call(call, *arguments)
            except ssl.SSLWantReadError:
                data = self.raw.recv(65536)
                with self.state:
                    if data:
                        self.incoming.write(data)
                    else:
                        self.incoming.write_eof()

    def recv(self, count):
        if self.is_ended:
            return b""
        try:
            return self._step(self._read, count)
        except ssl.SSLZeroReturnError:
            self.is_ended = True
        except ssl.SSLEOFError:
            self.is_ended = self.is_cut = True
        return b""

    def send(self, data):
        self.sendall(data)
        return len(data)

    def sendall(self, data):
        view = memoryview(data)
        for at in range(0, len(view), 65536):
            self._call(self.tls.write, view[at:at + 65536])

    def shutdown(self, how):
        """End the output: the alert first."""
        if how == socket.SHUT_WR:
            try:
                self._call(self.tls.unwrap)
            except ssl.SSLError:
                pass  # the peer's own alert may come much later
        self.raw.shutdown(how)

    def close(self):
        """Without the alert, as a process that dies does."""
        self.raw.close()

    def __getattr__(self, name):
        return getattr(self.raw, name)
