"""A signer of bundles whose signatures minisign checks: Ed25519 by RFC 8032 over BLAKE2b, so that the attacks need no program but Python."""

import base64
import hashlib

P = 2**255 - 19
ORDER = 2**252 + 27742317777372353535851937790883648493
D = -121665 * pow(121666, -1, P) % P
BASE_Y = 4 * pow(5, -1, P) % P
BASE_X = 15112221349535400772501151409588531511454012693041857206046113283949847762202


def add(one, two):
    """The sum of two points of the curve, in extended coordinates."""
    x1, y1, z1, t1 = one
    x2, y2, z2, t2 = two
    a, b = (y1 - x1) * (y2 - x2) % P, (y1 + x1) * (y2 + x2) % P
    c, d = 2 * t1 * t2 * D % P, 2 * z1 * z2 % P
    e, f, g, h = b - a, d - c, d + c, b + a
    return e * f % P, g * h % P, f * g % P, e * h % P


def times(number):
    """So many times the base point, as its 32 bytes."""
    point, power = (0, 1, 1, 0), (BASE_X, BASE_Y, 1, BASE_X * BASE_Y % P)
    while number:
        if number & 1:
            point = add(point, power)
        power, number = add(power, power), number >> 1
    x, y, z, _ = point
    x, y = x * pow(z, -1, P) % P, y * pow(z, -1, P) % P
    return (y | (x & 1) << 255).to_bytes(32, "little")


def number(data):
    return int.from_bytes(hashlib.sha512(data).digest(), "little") % ORDER


class Signer:
    def __init__(self, name):
        digest = hashlib.sha512(name.encode()).digest()
        self.secret = int.from_bytes(digest[:32], "little") & ~(7 | 1 << 255) & ~(1 << 254) | 1 << 254
        self.prefix, self.public, self.id = digest[32:], times(self.secret), digest[:8]

    def key(self):
        """The public key, as its file has it."""
        return base64.b64encode(b"Ed" + self.id + self.public).decode()

    def signed(self, data):
        secret = number(self.prefix + data)
        point = times(secret)
        return point + ((secret + number(point + self.public + data) * self.secret) % ORDER).to_bytes(32, "little")

    def signature(self, data, comment="attacks"):
        """A file of minisign: its second line signs the data, its last one that and the comment."""
        own = self.signed(hashlib.blake2b(data).digest())
        whole = self.signed(own + comment.encode())
        lines = ["untrusted comment: attacks", base64.b64encode(b"ED" + self.id + own).decode(), f"trusted comment: {comment}", base64.b64encode(whole).decode()]
        return "".join(line + "\n" for line in lines)

    def sign(self, bundle, comment="attacks"):
        (bundle / "SHA256SUMS.minisig").write_text(self.signature((bundle / "SHA256SUMS").read_bytes(), comment))
        return bundle
