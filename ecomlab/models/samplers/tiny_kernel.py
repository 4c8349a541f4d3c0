"""A Qwen3's forward pass, cache and draws on one core, compiled by numba for models of up to some 10M parameters.

Bits are equal on every machine: each sum has one order, whatever the batch, products are added by explicit fused
multiply-adds, and the exponential is ours; there is no fast-math, no BLAS and no function of the C library in float32.

Matrices are stored in *panels* of 16 output columns, shape (panels, depth, 16), as `panels` makes them. The cache is a
pool of pages of `PAGE` positions. A page holds keys as panels of 16 positions, (L, heads, PAGE / 16, D, 16), and values
as panels of 16 features, (L, heads, D / 16, PAGE, 16), so attention uses the same multiplication.
Letters of shapes: T tokens, H hidden, D head size, V vocabulary, L layers.
"""

# mypy: disable-error-code="untyped-decorator, no-untyped-call"

import math
import os
from typing import Any, NamedTuple

import numpy as np
from numba import config, njit, types
from numba.core import cgutils
from numba.extending import intrinsic

from ecomlab.files import cache_folder

if os.uname().machine == "x86_64":  # one target for AVX2 and AVX-512; also the key of the cache on disk
    config.CPU_NAME, config.CPU_FEATURES = "x86-64-v3", ""
WIDTH = 16
"""Columns of a panel."""
PAGE = 128
"""Positions of a page of the cache: a row occupies as many pages as it has begun."""
BLOCK = 64
"""Tokens that pass through the layers together: their activations stay in the processor's cache."""
GROUP = 128
"""Tokens of the vocabulary whose probabilities are summed before a draw looks at them one by one."""
ROUND, LOG2E = np.float32(1.5 * 2**23), np.float32(math.log2(math.e))
LN2_HIGH, LN2_LOW = np.float32(0.693359375), np.float32(-2.12194440e-4)
LOWEST = np.float32(-87.0)
ONE, ZERO = np.float32(1), np.float32(0)
P0, P1, P2, P3, P4, P5 = (
    np.float32(c) for c in (1.9875691e-4, 1.3981999e-3, 8.3334519e-3, 4.1665795e-2, 1.6666665e-1, 0.5)
)
"""Coefficients of Cephes' expf."""


class Weights(NamedTuple):
    """Weights as the kernel reads them; matrices as panels, by layer."""

    embedding: Any
    """(V, H)"""
    before: Any
    """Norms before attention, (L, H)."""
    query_norm: Any
    """(L, D), with the scale of attention."""
    key_norm: Any
    attention: Any
    """Queries, keys and values side by side, (L, panels, H, 16)."""
    output: Any
    between: Any
    """Norms before the feed-forward layers, (L, H)."""
    feed: Any
    """Gate and up side by side."""
    down: Any
    norm: Any
    head: Any
    cosine: Any
    """(positions, D / 2)"""
    sine: Any
    epsilon: Any


def panels(matrix_OI: np.ndarray) -> np.ndarray:
    """Pack the transposed weights of a linear layer into panels; columns beyond the last are zero."""
    outputs, depth = matrix_OI.shape
    count = -(-outputs // WIDTH)
    whole = np.zeros((count * WIDTH, depth), dtype=np.float32)
    whole[:outputs] = matrix_OI
    return np.ascontiguousarray(whole.reshape(count, WIDTH, depth).transpose(0, 2, 1))


def _compiled(signature: Any = None) -> Any:
    """Decorate a function to be compiled at its first call, or now for a signature, and kept in the cache folder; where
    nothing can be kept, it is compiled in every process."""

    def decorate(function: Any) -> Any:
        before, config.CACHE_DIR = config.CACHE_DIR, str(cache_folder().absolute() / "numba")
        given = () if signature is None else (signature,)
        try:
            return njit(*given, cache=True, error_model="numpy")(function)
        except (OSError, RuntimeError):
            return njit(*given, error_model="numpy")(function)
        finally:
            config.CACHE_DIR = before

    return decorate


def _tile(rows: int, columns: int) -> Any:
    """Make the intrinsic `tile(x, r, w, p, y, add)`: y[r + i, panel p + j] = x[r + i] @ w[p + j], added to y if `add`.

    The accumulators, `rows` x `columns` panels of two vectors of 8, stay in registers.
    """

    @intrinsic
    def tile(typing: Any, x: Any, r: Any, w: Any, p: Any, y: Any, add: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            ir = cgutils.ir
            number, vector, index = ir.FloatType(), ir.VectorType(ir.FloatType(), 8), ir.IntType(64)
            fma = cgutils.get_or_insert_function(
                builder.module, ir.FunctionType(vector, [vector] * 3), "llvm.fma.v8f32"
            )
            arrays = {
                name: context.make_array(signature.args[at])(context, builder, arguments[at])
                for name, at in (("x", 0), ("w", 2), ("y", 4))
            }
            strides = {name: cgutils.unpack_tuple(builder, a.strides) for name, a in arrays.items()}
            depth = cgutils.unpack_tuple(builder, arrays["x"].shape)[1]

            def pointer(name: str, row: Any, more: int, kind: Any) -> Any:
                start = builder.bitcast(arrays[name].data, ir.IntType(8).as_pointer())
                offset = builder.mul(builder.add(row, index(more)), strides[name][0])
                return builder.bitcast(builder.gep(start, [offset]), kind.as_pointer())

            xs = [pointer("x", arguments[1], i, number) for i in range(rows)]
            ws = [pointer("w", arguments[3], j, number) for j in range(columns)]
            y_column = builder.mul(arguments[3], index(WIDTH))
            places, sums = [], []
            for i in range(rows):
                row = builder.gep(pointer("y", arguments[1], i, number), [y_column])
                for half in range(2 * columns):
                    place = builder.bitcast(builder.gep(row, [index(8 * half)]), vector.as_pointer())
                    total = cgutils.alloca_once(builder, vector)
                    builder.store(ir.Constant(vector, [0.0] * 8), total)
                    places.append(place)
                    sums.append(total)
            with builder.if_then(arguments[5]):
                for place, total in zip(places, sums, strict=True):
                    builder.store(builder.load(place, align=4), total)
            with cgutils.for_range(builder, depth) as loop:
                step = builder.mul(loop.index, index(WIDTH))
                factors = []
                for w_pointer in ws:
                    for half in range(2):
                        at = builder.gep(w_pointer, [builder.add(step, index(8 * half))])
                        factors.append(builder.load(builder.bitcast(at, vector.as_pointer()), align=4))
                for i, x_pointer in enumerate(xs):
                    one = builder.load(builder.gep(x_pointer, [loop.index]), align=4)
                    first = builder.insert_element(ir.Constant(vector, ir.Undefined), one, ir.IntType(32)(0))
                    mask = ir.Constant(ir.VectorType(ir.IntType(32), 8), [0] * 8)
                    spread = builder.shuffle_vector(first, ir.Constant(vector, ir.Undefined), mask)
                    for j, factor in enumerate(factors):
                        total = sums[i * len(factors) + j]
                        builder.store(builder.call(fma, [spread, factor, builder.load(total)]), total)
            for place, total in zip(places, sums, strict=True):
                builder.store(builder.load(total), place, align=4)
            return context.get_dummy_value()

        return types.void(x, r, w, p, y, add), generate

    return tile


_six, _four, _one, _wide = _tile(6, 1), _tile(4, 1), _tile(1, 1), _tile(1, 4)


@intrinsic
def _power(typing: Any, rounded: Any) -> Any:
    """Return 2**n in float32 for `rounded` = ROUND + n, from the bits."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        ir = cgutils.ir
        whole = ir.IntType(32)
        bits = builder.shl(builder.bitcast(arguments[0], whole), whole(23))
        return builder.bitcast(builder.add(bits, whole(127 << 23)), ir.FloatType())

    return types.float32(types.float32), generate


@njit(inline="always")
def _exp(x):  # type: ignore[no-untyped-def]
    """exp(x) for x <= 87, within 2 units in the last place; NaN stays NaN."""
    x = LOWEST if x < LOWEST else x
    rounded = x * LOG2E + ROUND
    n = rounded - ROUND
    r = x - n * LN2_HIGH - n * LN2_LOW
    polynomial = ((((P0 * r + P1) * r + P2) * r + P3) * r + P4) * r + P5
    return (polynomial * (r * r) + r + ONE) * _power(rounded)


C1, C2 = (
    types.Array(types.float32, 1, "C"),
    types.Array(types.float32, 2, "C"),
)  # contiguous, for vectors of 8
A2, A3, A4 = (types.Array(types.float32, axes, "A") for axes in (2, 3, 4))


@_compiled(types.void(A2, A3, A2, types.boolean))
def multiply(x, w, y, add):  # type: ignore[no-untyped-def]
    """Write x (T, depth) @ w (panels, at least depth, 16) to y (T, 16 panels), or add it."""
    rows, count = x.shape[0], w.shape[0]
    p = 0
    while rows == 1 and p + 4 <= count:
        _wide(x, 0, w, p, y, add)
        p += 4
    for q in range(p, count):
        r = 0
        while r + 6 <= rows:
            _six(x, r, w, q, y, add)
            r += 6
        if r + 4 <= rows:
            _four(x, r, w, q, y, add)
            r += 4
        while r < rows:
            _one(x, r, w, q, y, add)
            r += 1


@_compiled(types.float32(C1))
def _largest(x):  # type: ignore[no-untyped-def]
    """Return the largest number of a vector."""
    a = b = c = d = x[0]
    whole = len(x) // 4 * 4
    for i in range(0, whole, 4):
        a = x[i] if x[i] > a else a
        b = x[i + 1] if x[i + 1] > b else b
        c = x[i + 2] if x[i + 2] > c else c
        d = x[i + 3] if x[i + 3] > d else d
    for i in range(whole, len(x)):
        a = x[i] if x[i] > a else a
    return max(max(a, b), max(c, d))


@_compiled(types.float32(C1))
def _total(x):  # type: ignore[no-untyped-def]
    """Sum a vector in four interleaved parts."""
    a = b = c = d = ZERO
    whole = len(x) // 4 * 4
    for i in range(0, whole, 4):
        a += x[i]
        b += x[i + 1]
        c += x[i + 2]
        d += x[i + 3]
    for i in range(whole, len(x)):
        a += x[i]
    return (a + b) + (c + d)


@_compiled(types.void(C1, types.float32))
def _exponentiate(x, top):  # type: ignore[no-untyped-def]
    """Replace x by exp(x - top)."""
    for i in range(len(x)):
        x[i] = _exp(x[i] - top)


@_compiled(types.void(C1, C1, C1, types.float32))
def _normalize(x, weight, y, epsilon):  # type: ignore[no-untyped-def]
    """Write the root-mean-square norm of x to y, which may be x."""
    a = b = c = d = ZERO
    for i in range(0, len(x), 4):  # its length is a multiple of 16
        a += x[i] * x[i]
        b += x[i + 1] * x[i + 1]
        c += x[i + 2] * x[i + 2]
        d += x[i + 3] * x[i + 3]
    scale = ONE / np.sqrt(((a + b) + (c + d)) / np.float32(len(x)) + epsilon)
    for i in range(len(x)):
        y[i] = weight[i] * (x[i] * scale)


@_compiled(types.void(C1, C1, C1))
def _rotate(x, cosine, sine):  # type: ignore[no-untyped-def]
    """Rotate the features of a head by its position's angles, in place."""
    half = len(cosine)
    for i in range(half):
        left, right = x[i], x[half + i]
        x[i] = left * cosine[i] - right * sine[i]
        x[half + i] = right * cosine[i] + left * sine[i]


@_compiled(types.void(C1, C1))
def _activate(gate, up):  # type: ignore[no-untyped-def]
    """Replace `gate` by silu(gate) * up."""
    for i in range(len(gate)):
        g = gate[i]
        gate[i] = g * up[i] / (ONE + _exp(-g if g > LOWEST else -LOWEST))


@_compiled(types.void(A2, A4, A4, types.int64[:], types.int64, C2, A2))
def _attend(q, keys, values, pages, first, scores, out):  # type: ignore[no-untyped-def]
    """Attend with one head from T consecutive positions, the first at `first`, to all up to their own.

    q, out: (T, D); keys, values: one layer and head of the pool; pages: those of the row, in order; scores: room for
    (T, positions of these pages).
    """
    count, last = len(q), first + len(q)
    for p in range(len(pages)):
        known = (min(last - p * PAGE, PAGE) - 1) // WIDTH + 1
        multiply(q, keys[pages[p], :known], scores[:, p * PAGE :], False)
    for t in range(count):
        own = scores[t, : first + t + 1]
        _exponentiate(own, _largest(own))
        share = ONE / _total(own)
        for i in range(len(own)):
            own[i] *= share
        scores[t, first + t + 1 : last] = ZERO
    for p in range(len(pages)):
        multiply(scores[:, p * PAGE : min(last, (p + 1) * PAGE)], values[pages[p]], out, p > 0)


@_compiled()
def _block(w, keys, values, pages, ids, rows, positions):  # type: ignore[no-untyped-def]
    """Pass T tokens through all layers, append their keys and values, and return hidden states (T, H).

    Tokens of one row are neighbours, in the order of their positions. pages: those of each row, (rows, most pages);
    keys, values: the pool, with the pages as first axis.
    """
    count, hidden = len(ids), w.embedding.shape[1]
    shared, size = keys.shape[2], keys.shape[4]
    heads = w.output.shape[2] // size
    feed = w.down.shape[2]
    x = np.empty((count, hidden), np.float32)
    n = np.empty((count, hidden), np.float32)
    q = np.empty((count, (heads + 2 * shared) * size), np.float32)
    seen = np.empty((count, heads * size), np.float32)
    wide = np.empty((count, 2 * feed), np.float32)
    scores = np.empty((count, (positions.max() // PAGE + 1) * PAGE), np.float32)
    for t in range(count):
        x[t] = w.embedding[ids[t]]
    for layer in range(len(w.before)):
        for t in range(count):
            _normalize(x[t], w.before[layer], n[t], w.epsilon)
        multiply(n, w.attention[layer], q, False)
        for t in range(count):
            at, place = positions[t], positions[t] % PAGE
            page, panel, column = pages[rows[t], at // PAGE], place // WIDTH, place % WIDTH
            for h in range(heads + shared):
                part = q[t, h * size : (h + 1) * size]
                norm = w.query_norm[layer] if h < heads else w.key_norm[layer]
                _normalize(part, norm, part, w.epsilon)
                _rotate(part, w.cosine[at], w.sine[at])
            for h in range(shared):
                key, value = (heads + h) * size, (heads + shared + h) * size
                keys[page, layer, h, panel, :, column] = q[t, key : key + size]
                for d in range(size // WIDTH):
                    start = value + d * WIDTH
                    values[page, layer, h, d, place, :] = q[t, start : start + WIDTH]
        start = 0
        while start < count:
            end, row = start + 1, rows[start]
            while end < count and rows[end] == row:
                end += 1
            begun = pages[row, : positions[end - 1] // PAGE + 1]
            for h in range(heads):
                kv, columns = h * shared // heads, slice(h * size, (h + 1) * size)
                _attend(
                    q[start:end, columns],
                    keys[:, layer, kv],
                    values[:, layer, kv],
                    begun,
                    positions[start],
                    scores[: end - start],
                    seen[start:end, columns],
                )
            start = end
        multiply(seen, w.output[layer], x, True)
        for t in range(count):
            _normalize(x[t], w.between[layer], n[t], w.epsilon)
        multiply(n, w.feed[layer], wide, False)
        for t in range(count):
            _activate(wide[t, :feed], wide[t, feed:])
        multiply(wide[:, :feed], w.down[layer], x, True)
    return x


@_compiled()
def read(w, keys, values, pages, ids, rows, positions, last):  # type: ignore[no-untyped-def]
    """Append tokens to the cache; return the logits after those at the indices `last`, (B, 16 panels).

    Arguments as in `_block`, for any number of tokens; `last` is sorted.
    """
    found = np.empty((len(last), w.embedding.shape[1]), np.float32)
    logits = np.empty((len(last), w.head.shape[0] * WIDTH), np.float32)
    b = 0
    for start in range(0, len(ids), BLOCK):
        end = min(start + BLOCK, len(ids))
        x = _block(w, keys, values, pages, ids[start:end], rows[start:end], positions[start:end])
        while b < len(last) and last[b] < end:
            _normalize(x[last[b] - start], w.norm, found[b], w.epsilon)
            b += 1
    multiply(found, w.head, logits, False)
    return logits


@_compiled()
def choose(logits, size, temperature, uniforms, greedy, chosen, logprobs):  # type: ignore[no-untyped-def]
    """Choose a token per row from the first `size` logits: the first of the likeliest, or by inverse transform.

    Writes tokens to `chosen` and their log-probabilities to `logprobs`, both (B,); `uniforms`: (B,) from [0, 1). A
    row with NaN gets the log-probability NaN.
    """
    weights = np.empty(size, np.float32)
    groups = np.empty(-(-size // GROUP), np.float64)
    for b in range(len(logits)):
        x = logits[b, :size]
        for i in range(size):
            x[i] /= temperature
        top, total = _largest(x), 0.0
        weights[:] = x
        _exponentiate(weights, top)
        for g in range(len(groups)):
            part = 0.0
            for i in range(g * GROUP, min((g + 1) * GROUP, size)):
                part += weights[i]
            groups[g] = part
            total += part
        token = 0
        if greedy:
            while token < size - 1 and x[token] != top:
                token += 1
        else:
            threshold, below, g = uniforms[b] * total, 0.0, 0
            while g < len(groups) - 1 and below + groups[g] <= threshold:
                below += groups[g]
                g += 1
            token = g * GROUP
            below += weights[token]
            while token < size - 1 and below <= threshold:
                token += 1
                below += weights[token]
        chosen[b] = token
        logprobs[b] = x[token] - top - np.float32(math.log(total))
