"""A small transformer that learns from a selection's bytes and must predict others: a judge that generalises.

A bigram model counts which word follows which; whatever a text teaches beyond that it cannot show. This one is a
decoder of 0.5 million parameters over bytes (pre-norm, learned positions, tied output), trained by Adam at a small step
size in small batches. All selections of a split start from the same weights and see equally many tokens in one order
drawn by the split's seed, so that they differ in their texts alone.

| symbol | meaning |
|---|---|
| V = 257 | the bytes, and `START`, which stands before each text |
| C, B | context; windows per step |
| T | tokens that a selection trains on, bytes and start signs |

A state is a value (`Training`): the same seed, texts, device and number of threads give the same bytes, whether a
training ran through or went on from a kept state.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import torch
import torch.nn.functional as F
from torch import Tensor

from datamask.polling import Poll, no_poll

START = 256
VOCABULARY = 257
BEFORE = 2
"""Bytes before each that are part of its embedding: what stands next to it need not first be found by attention, for
which these trainings are too short."""

CHUNK = 100
"""Steps between two states that are kept: some seconds on one core."""

WINDOWS_AT_ONCE = 64
WARM = 0.1
"""Share of the steps in which the step size rises; it falls to nothing in the others."""

BETAS, EPSILON, LARGEST_GRADIENT = (0.9, 0.98), 1e-8, 1.0
TEXTS_AT_ONCE = 4_096


@dataclass(frozen=True)
class Size:
    """Of model and steps.

    Attributes:
        layers, width, heads, context: of the decoder. batch: windows per step. rate: the largest step size.
        epochs: times that a token is seen.
    """

    layers: int = 2
    width: int = 128
    heads: int = 4
    context: int = 64
    batch: int = 4
    rate: float = 1e-3
    epochs: int = 1

    def shapes(self) -> dict[str, tuple[int, ...]]:
        """Name -> shape of every parameter, in their order in a flat vector."""
        w = self.width
        shapes: dict[str, tuple[int, ...]] = {
            "embedding": (VOCABULARY, w),
            "before": (BEFORE * VOCABULARY, w),
            "position": (self.context, w),
        }
        for layer in range(self.layers):
            shapes |= {
                f"attend{layer}": (w, 3 * w),
                f"gather{layer}": (w, w),
                f"widen{layer}": (w, 4 * w),
                f"narrow{layer}": (4 * w, w),
            }
        return shapes

    @property
    def parameters(self) -> int:
        """How many there are."""
        return sum(int(np.prod(shape)) for shape in self.shapes().values())


SMALL = Size()
"""0.5 million parameters."""


@dataclass(frozen=True)
class ByteTexts:
    """N texts as bytes.

    Attributes:
        content: uint8, all texts end to end. starts: int64 ``(N + 1,)``, where each begins.
    """

    content: np.ndarray
    starts: np.ndarray

    def __len__(self) -> int:
        return len(self.starts) - 1

    @property
    def lengths(self) -> np.ndarray:
        """Tokens of each text, its start sign included: int64 ``(N,)``."""
        return np.diff(self.starts) + 1

    def of(self, texts: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The tokens of `texts` end to end, each behind its start sign, and the place in `texts` of each: int64."""
        lengths = self.lengths[texts]
        owner = np.repeat(np.arange(len(texts)), lengths)
        within = np.arange(len(owner)) - np.repeat(np.cumsum(lengths) - lengths, lengths)
        # a start sign reads the byte before its text, which is then replaced; the first text has none before it
        at = np.maximum(self.starts[texts][owner] + within - 1, 0)
        tokens = self.content[at].astype(np.int64) if len(self.content) else np.full(len(owner), START, dtype=np.int64)
        return np.where(within == 0, START, tokens), owner


def read_bytes(texts: pa.ChunkedArray, characters: int, poll: Poll = no_poll) -> ByteTexts:
    """The UTF-8 of the first `characters` of each text; null is the empty text."""
    parts, lengths = [np.empty(0, np.uint8)], [np.empty(0, np.int64)]
    for low in range(0, len(texts), TEXTS_AT_ONCE):
        poll()
        part = pc.fill_null(texts.slice(low, TEXTS_AT_ONCE).cast(pa.large_string()), "")
        part = pc.utf8_slice_codeunits(part, 0, characters).combine_chunks()
        offsets = np.frombuffer(part.buffers()[1], np.int64)[part.offset : part.offset + len(part) + 1]
        content = part.buffers()[2]
        if content is not None:
            parts.append(np.frombuffer(content, np.uint8)[offsets[0] : offsets[-1]])
        lengths.append(np.diff(offsets))
    return ByteTexts(np.concatenate(parts), np.concatenate([[0], np.cumsum(np.concatenate(lengths))]).astype(np.int64))


@dataclass
class Training:
    """Where a training is: `step` steps are done.

    Attributes:
        weights, mean, square: float32 ``(P,)``: the parameters, and Adam's running means of gradient and its square.
    """

    step: int
    weights: Tensor
    mean: Tensor
    square: Tensor

    def arrays(self) -> dict[str, np.ndarray]:
        """As it is kept."""
        vectors = {"weights": self.weights, "mean": self.mean, "square": self.square}
        return {name: vector.cpu().numpy() for name, vector in vectors.items()}

    @classmethod
    def restored(cls, step: int, arrays: dict[str, np.ndarray], device: torch.device) -> Training:
        """From what `arrays` gave."""
        return cls(step, *(torch.tensor(arrays[name], device=device) for name in ("weights", "mean", "square")))


def begin(size: Size, seed: int, device: torch.device) -> Training:
    """Random weights; matrices by their inputs, those that write into the stream smaller with the number of layers."""
    rng = np.random.default_rng([257, seed])
    parts = []
    for name, shape in size.shapes().items():
        spread = 0.02 if name in ("embedding", "before", "position") else shape[0] ** -0.5
        if name.startswith(("gather", "narrow")):
            spread /= (2 * size.layers) ** 0.5
        parts.append(rng.normal(0, spread, shape).astype(np.float32).ravel())
    weights = torch.from_numpy(np.concatenate(parts)).to(device)
    return Training(0, weights, torch.zeros_like(weights), torch.zeros_like(weights))


def scores(size: Size, weights: Tensor, tokens: Tensor) -> Tensor:
    """What comes next: logits ``(b, c, V)`` after each of the tokens ``(b, c)``, c <= C."""
    shapes = size.shapes()
    parts = dict(zip(shapes, torch.split(weights, [int(np.prod(shape)) for shape in shapes.values()])))
    matrix = {name: part.view(shapes[name]) for name, part in parts.items()}
    b, c = tokens.shape
    stream = matrix["embedding"][tokens] + matrix["position"][:c]
    for back in range(1, BEFORE + 1):
        earlier = F.pad(tokens, (back, 0), value=START)[:, :c]
        stream = stream + matrix["before"][earlier + (back - 1) * VOCABULARY]
    for layer in range(size.layers):
        normal = F.layer_norm(stream, (size.width,))
        query, key, value = (normal @ matrix[f"attend{layer}"]).view(b, c, 3, size.heads, -1).permute(2, 0, 3, 1, 4)
        seen = F.scaled_dot_product_attention(query, key, value, is_causal=True)
        stream = stream + seen.transpose(1, 2).reshape(b, c, -1) @ matrix[f"gather{layer}"]
        normal = F.layer_norm(stream, (size.width,))
        stream = stream + F.gelu(normal @ matrix[f"widen{layer}"]) @ matrix[f"narrow{layer}"]
    logits: Tensor = F.layer_norm(stream, (size.width,)) @ matrix["embedding"].T
    return logits


def steps_of(size: Size, tokens: int) -> int:
    """Steps of a training on so many tokens, the last of each epoch perhaps a smaller one."""
    windows = max(1, -(-(tokens - 1) // size.context))
    return size.epochs * -(-windows // size.batch)


def train(
    size: Size,
    tokens: np.ndarray,
    seed: int,
    device: torch.device,
    poll: Poll = no_poll,
    start: Training | None = None,
    keep: Callable[[Training], object] = lambda state: None,
) -> Tensor:
    """The weights after a training.

    Args:
        tokens: int64 ``(T,)``, T >= 2, text after text.
        seed: of the first weights and of the order of windows.
        start: a state of this very training, to go on from.
        keep: called every `CHUNK` steps with the state there.
    """
    state = start or begin(size, seed, device)
    inputs, targets = _windows(size, tokens[:-1], tokens[1:])
    each = -(-len(inputs) // size.batch)
    steps = steps_of(size, len(tokens))
    while state.step < steps:
        poll()
        epoch, place = divmod(state.step, each)
        order = np.random.default_rng([258, seed, epoch]).permutation(len(inputs))
        batch = order[place * size.batch : (place + 1) * size.batch]
        _descend(size, state, torch.from_numpy(inputs[batch]), torch.from_numpy(targets[batch]), steps)
        if state.step % CHUNK == 0 and state.step < steps:
            keep(state)
    return state.weights


def _descend(size: Size, state: Training, inputs: Tensor, targets: Tensor, steps: int) -> None:
    """One step of Adam (Kingma and Ba 2015), in place."""
    weights = state.weights.detach().requires_grad_()
    logits = scores(size, weights, inputs.to(weights.device))
    loss = F.cross_entropy(logits.flatten(0, 1), targets.to(weights.device).flatten(), ignore_index=-1)
    (gradient,) = torch.autograd.grad(loss, weights)
    gradient *= LARGEST_GRADIENT / gradient.norm().clamp_min(LARGEST_GRADIENT)
    state.step += 1
    warm = max(1.0, WARM * steps)
    rate = size.rate * min(state.step / warm, (steps + 1 - state.step) / max(1.0, steps + 1 - warm))
    first, second = BETAS
    state.mean = torch.lerp(gradient, state.mean, first)
    state.square = torch.lerp(gradient**2, state.square, second)
    mean = state.mean / (1 - first**state.step)
    root = (state.square / (1 - second**state.step)).sqrt()
    state.weights = weights.detach() - rate * mean / (root + EPSILON)


@torch.no_grad()
def nats(size: Size, weights: Tensor, texts: ByteTexts, asked: np.ndarray, poll: Poll = no_poll) -> np.ndarray:
    """Minus the log probability of each text's bytes, summed: float64 ``(D,)``; 0 for an empty one.

    A text longer than the context is cut into windows of it, each of which begins with the last byte before it alone.
    """
    tokens, owner = texts.of(asked)
    sums = np.zeros(len(asked))
    inputs, targets, owners = _text_windows(size, tokens, owner)
    # windows of one length beside each other leave little to pad
    order = np.argsort((targets >= 0).sum(axis=1), kind="stable")
    for low in range(0, len(order), WINDOWS_AT_ONCE):
        poll()
        batch = order[low : low + WINDOWS_AT_ONCE]
        longest = int((targets[batch] >= 0).sum(axis=1).max())
        of_window = torch.from_numpy(targets[batch][:, :longest]).to(weights.device)
        logits = scores(size, weights, torch.from_numpy(inputs[batch][:, :longest]).to(weights.device))
        losses = F.cross_entropy(logits.flatten(0, 1), of_window.flatten(), ignore_index=-1, reduction="none")
        summed = losses.view(of_window.shape).sum(dim=1, dtype=torch.float64).cpu().numpy()
        np.add.at(sums, owners[batch], summed)
    return sums


def _windows(size: Size, inputs: np.ndarray, targets: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Both as rows of C tokens; behind the last ones stands `START`, and -1 as its target, which is not asked for."""
    rows = max(1, -(-len(inputs) // size.context))
    padded = np.full((2, rows * size.context), -1, np.int64)
    padded[0] = START
    padded[0, : len(inputs)], padded[1, : len(targets)] = inputs, targets
    return padded[0].reshape(rows, -1), padded[1].reshape(rows, -1)


def _text_windows(size: Size, tokens: np.ndarray, owner: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Windows that hold one text each: inputs and targets ``(W, C)``, and whose each is."""
    asked = np.flatnonzero(tokens != START)  # each is predicted from the token before it, of the same text
    first = np.searchsorted(owner, owner[asked])
    row_within, column = np.divmod(asked - first - 1, size.context)
    keys, row = np.unique(owner[asked] * np.int64(len(tokens) + 1) + row_within, return_inverse=True)
    inputs = np.full((len(keys), size.context), START, np.int64)
    targets = np.full((len(keys), size.context), -1, np.int64)
    inputs[row, column], targets[row, column] = tokens[asked - 1], tokens[asked]
    return inputs, targets, keys // (len(tokens) + 1)
