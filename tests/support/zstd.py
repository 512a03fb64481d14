"""zstd for tests, through libzstd: Python's standard library has none."""

import ctypes

_lib = ctypes.CDLL("libzstd.so.1")
for _name in ("ZSTD_compress", "ZSTD_decompress", "ZSTD_compressBound", "ZSTD_isError"):
    getattr(_lib, _name).restype = ctypes.c_size_t
_OPENED_MAX = 64 << 20


def packed(data):
    room = ctypes.create_string_buffer(_lib.ZSTD_compressBound(ctypes.c_size_t(len(data))))
    count = _lib.ZSTD_compress(room, ctypes.c_size_t(len(room)), data, ctypes.c_size_t(len(data)), ctypes.c_int(3))
    return room.raw[:count]


def opened(data):
    room = ctypes.create_string_buffer(min(_OPENED_MAX, max(1 << 20, len(data) * 100)))
    count = _lib.ZSTD_decompress(room, ctypes.c_size_t(len(room)), data, ctypes.c_size_t(len(data)))
    if count > len(room):
        raise ValueError("not zstd")
    return room.raw[:count]
