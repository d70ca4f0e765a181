"""Checks signatures of Ed25519, with the reference code of RFC 8032, section 6.

Only public values are used here, so nothing can leak through its timing. A library would make the node
program larger by a third, for one signature a year."""

from __future__ import annotations

from hashlib import sha512

_P = 2**255 - 19
_ORDER = 2**252 + 27742317777372353535851937790883648493
_D = -121665 * pow(121666, -1, _P) % _P
_ROOT_OF_MINUS_1 = pow(2, (_P - 1) // 4, _P)
# x, y, z and t of the extended coordinates.
_Point = tuple[int, int, int, int]
_ZERO: _Point = (0, 1, 1, 0)


_BASE_X = 15112221349535400772501151409588531511454012693041857206046113283949847762202
_BASE_Y = 4 * pow(5, -1, _P) % _P
_BASE: _Point = (_BASE_X, _BASE_Y, 1, _BASE_X * _BASE_Y % _P)


def is_signed(public_key: bytes, message: bytes, signature: bytes) -> bool:
    """Returns whether the holder of the key has signed the message. Anything that is no key or no signature
    has signed nothing."""
    if len(public_key) != 32 or len(signature) != 64:
        return False
    key, half = _decompress(public_key), _decompress(signature[:32])
    scalar = int.from_bytes(signature[32:], "little")
    if key is None or half is None or scalar >= _ORDER:
        return False
    challenge = int.from_bytes(sha512(signature[:32] + public_key + message).digest(), "little") % _ORDER
    return _are_equal(_multiply(scalar, _BASE), _add(half, _multiply(challenge, key)))


def _add(first: _Point, second: _Point) -> _Point:
    a = (first[1] - first[0]) * (second[1] - second[0]) % _P
    b = (first[1] + first[0]) * (second[1] + second[0]) % _P
    c = 2 * first[3] * second[3] * _D % _P
    d = 2 * first[2] * second[2] % _P
    e, f, g, h = b - a, d - c, d + c, b + a
    return e * f % _P, g * h % _P, f * g % _P, e * h % _P


def _multiply(scalar: int, point: _Point) -> _Point:
    result = _ZERO
    while scalar:
        if scalar & 1:
            result = _add(result, point)
        point = _add(point, point)
        scalar >>= 1
    return result


def _are_equal(first: _Point, second: _Point) -> bool:
    return (first[0] * second[2] - second[0] * first[2]) % _P == 0 and (
        first[1] * second[2] - second[1] * first[2]
    ) % _P == 0


def _decompress(data: bytes) -> _Point | None:
    y = int.from_bytes(data, "little")
    sign, y = y >> 255, y & (2**255 - 1)
    x = _x_of(y, sign)
    return None if x is None else (x, y, 1, x * y % _P)


def _x_of(y: int, sign: int) -> int | None:
    if y >= _P:
        return None
    square = (y * y - 1) * pow(_D * y * y + 1, -1, _P) % _P
    if square == 0:
        return None if sign else 0
    x = pow(square, (_P + 3) // 8, _P)
    if (x * x - square) % _P:
        x = x * _ROOT_OF_MINUS_1 % _P
    if (x * x - square) % _P:
        return None
    return _P - x if x & 1 != sign else x
