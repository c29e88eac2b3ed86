"""The small transformer: its texts, its numbers against float64 numpy, its trainings that stop and go on."""

from __future__ import annotations

import time

import numpy as np
import pyarrow as pa
import pytest
import torch
from scipy.special import erf

from datamask.analyses.ablation.compute import proxy_models, transformer
from datamask.analyses.ablation.compute.kept import LOSSES, TRAINING, StudyCache
from datamask.analyses.ablation.compute.meters import TextMeter
from datamask.analyses.ablation.compute.proxy_models import TransformerProxy
from datamask.analyses.ablation.compute.transformer import (
    BEFORE,
    SMALL,
    START,
    VOCABULARY,
    Size,
    Training,
    begin,
    nats,
    read_bytes,
    steps_of,
    train,
)
from datamask.errors import Stopped
from datamask.evaluation.measures.words import read_words

TINY = Size(layers=2, width=16, heads=2, context=8, batch=4, rate=1e-2)
CPU = torch.device("cpu")


def texts_of(*texts: str | None, characters: int = 99):
    return read_bytes(pa.chunked_array([pa.array(texts, pa.large_string())]), characters)


def brute_logits(size: Size, weights: np.ndarray, tokens: list[int]) -> np.ndarray:
    """Logits after each token in float64, one token and one head at a time."""
    matrix, at = {}, 0
    for name, shape in size.shapes().items():
        matrix[name] = weights[at : at + np.prod(shape)].reshape(shape).astype(np.float64)
        at += int(np.prod(shape))

    def norm(x):
        return (x - x.mean()) / np.sqrt(x.var() + 1e-5)

    stream = []
    for place, token in enumerate(tokens):
        row = matrix["embedding"][token] + matrix["position"][place]
        for back in range(1, BEFORE + 1):
            earlier = tokens[place - back] if place >= back else START
            row = row + matrix["before"][(back - 1) * VOCABULARY + earlier]
        stream.append(row)
    wide = size.width // size.heads
    for layer in range(size.layers):
        parts = [norm(row) @ matrix[f"attend{layer}"] for row in stream]
        after = []
        for place, row in enumerate(stream):
            heads = []
            for head in range(size.heads):
                q, k, v = (
                    slice(kind * size.width + head * wide, kind * size.width + (head + 1) * wide) for kind in range(3)
                )
                weight = np.array([parts[place][q] @ parts[other][k] / wide**0.5 for other in range(place + 1)])
                weight = np.exp(weight - weight.max())
                heads.append(sum(w * parts[other][v] for other, w in enumerate(weight / weight.sum())))
            row = row + np.concatenate(heads) @ matrix[f"gather{layer}"]
            hidden = norm(row) @ matrix[f"widen{layer}"]
            after.append(row + (hidden * 0.5 * (1 + erf(hidden / 2**0.5))) @ matrix[f"narrow{layer}"])
        stream = after
    return np.array([norm(row) @ matrix["embedding"].T for row in stream])


def brute_nats(size: Size, weights: np.ndarray, text: bytes) -> float:
    """Minus log probability of a text, window by window."""
    tokens, total = [START, *text], 0.0
    for low in range(0, len(text), size.context):
        window = tokens[low : low + size.context + 1]
        logits = brute_logits(size, weights, window[:-1])
        logits -= logits.max(axis=1, keepdims=True)
        chances = logits - np.log(np.exp(logits).sum(axis=1, keepdims=True))
        total -= sum(chances[place, token] for place, token in enumerate(window[1:]))
    return total


def test_texts_as_bytes():
    whole = pa.chunked_array([pa.array(["cut off", "ab", "", None], pa.string()).slice(1), pa.array(["äöü", "x"])])
    texts = read_bytes(whole, 2)
    assert len(texts) == 5 and texts.lengths.tolist() == [3, 1, 1, 5, 2]
    tokens, owner = texts.of(np.array([3, 1, 4, 0, 2]))
    ae, oe = "ä".encode(), "ö".encode()
    assert tokens.tolist() == [START, *ae, *oe, START, START, 120, START, 97, 98, START]
    assert owner.tolist() == [0, 0, 0, 0, 0, 1, 2, 2, 3, 3, 3, 4]
    assert texts.of(np.array([0]))[0].tolist() == [START, 97, 98]
    empty = texts_of("", None)
    assert empty.of(np.array([1, 0]))[0].tolist() == [START, START] and len(texts_of()) == 0


def test_numbers_are_those_of_float64():
    weights = begin(TINY, 3, CPU).weights * 2
    content = ["", "a", "ab", "exactly8", "nine byte", "x" * 40, "äöü €", "some words of more than one window"]
    texts = texts_of(*content)
    found = nats(TINY, weights, texts, np.arange(len(content)))
    expected = [brute_nats(TINY, weights.numpy(), text.encode()) for text in content]
    assert found == pytest.approx(expected, rel=1e-5) and found[0] == 0
    # whatever stands beside it, a text's number is its own
    assert nats(TINY, weights, texts, np.array([6, 1])) == pytest.approx(found[[6, 1]], rel=1e-5)
    assert nats(TINY, weights, texts, np.array([0])).tolist() == [0]
    assert nats(TINY, weights, texts, np.arange(0)).shape == (0,)


def test_sizes_and_steps():
    assert 500_000 <= SMALL.parameters <= 2_000_000
    assert len(begin(SMALL, 0, CPU).weights) == SMALL.parameters
    # 33 tokens are 32 predictions in 4 windows of 8, hence one step; one more token is one window more
    assert [steps_of(TINY, tokens) for tokens in (2, 33, 34, 65, 66)] == [1, 1, 2, 2, 3]


def stream(count: int = 120) -> np.ndarray:
    rng = np.random.default_rng(1)
    return texts_of(*("".join(rng.permutation(list("abc"))) * 4 for _ in range(count))).of(np.arange(count))[0]


def test_training_teaches_and_the_seed_decides_everything():
    tokens = stream(400)
    asked = texts_of("abcabcabcabc", "acbacb")
    before = nats(TINY, begin(TINY, 5, CPU).weights, asked, np.arange(2))
    weights = train(TINY, tokens, 5, CPU)
    after = nats(TINY, weights, asked, np.arange(2))
    # bytes at random cost 5.5 nats each; three letters in a period cost little once the period is seen
    assert (before / [12, 6] > 5).all() and (after / [12, 6] < 0.8).all()
    assert torch.equal(weights, train(TINY, tokens, 5, CPU)) and not torch.equal(weights, train(TINY, tokens, 6, CPU))
    # the least there is to learn from
    assert torch.isfinite(train(TINY, np.array([START, START]), 0, CPU)).all()


def test_a_stopped_training_goes_on_to_the_same_weights(monkeypatch):
    monkeypatch.setattr(transformer, "CHUNK", 7)
    tokens, states = stream(), []
    straight = train(TINY, tokens, 2, CPU, keep=lambda state: states.append((state.step, state.arrays())))
    steps = steps_of(TINY, len(tokens))
    assert [step for step, _ in states] == list(range(7, steps, 7)) and steps > 21
    for step, arrays in states[:2]:
        assert torch.equal(train(TINY, tokens, 2, CPU, start=Training.restored(step, arrays, CPU)), straight)
    polled = []

    def poll():
        polled.append(1)
        if len(polled) > 9:
            raise Stopped("enough")

    with pytest.raises(Stopped):
        train(TINY, tokens, 2, CPU, poll)


def test_what_a_training_gave_or_where_it_was_is_found_again(tmp_path, monkeypatch):
    monkeypatch.setattr(transformer, "CHUNK", 5)
    done = []
    descend = transformer._descend
    monkeypatch.setattr(transformer, "_descend", lambda *given: (done.append(1), descend(*given)))
    texts = texts_of(*(f"text {place} of some {place % 7} words" for place in range(80)))
    trained, asked = np.arange(0, 60), np.arange(60, 80)
    plain = TransformerProxy(texts, CPU, TINY).sums(trained, 1_000, asked, 4)
    steps = len(done)
    assert steps == steps_of(TINY, 1_000)
    kept = StudyCache(tmp_path, "f" * 32, "0123456789ab-")
    proxy = TransformerProxy(texts, CPU, TINY, kept)

    def poll():
        if len(done) >= steps + 12:
            raise Stopped("enough")

    with pytest.raises(Stopped):
        proxy.sums(trained, 1_000, asked, 4, poll)
    assert len(kept.names(TRAINING)) == 1 and not kept.names(LOSSES)
    done.clear()
    assert (proxy.sums(trained, 1_000, asked, 4) == plain).all() and len(done) == steps - 10
    assert not kept.names(TRAINING) and len(kept.names(LOSSES)) == 1
    assert (proxy.sums(trained, 1_000, asked, 4) == plain).all() and len(done) == steps - 10
    # another seed, budget or question of texts is another training; what is beyond the budget is not
    assert (proxy.sums(trained, 1_000, asked, 5) != plain).any()
    assert (proxy.sums(trained, 900, asked, 4) != plain).any()
    assert (proxy.sums(trained[:-1], 1_000, asked, 4) == plain).all()
    assert len(kept.names(LOSSES)) == 3


def test_a_proxy_model_counts_bytes_and_asks_for_as_many_as_there_is_time_for(monkeypatch):
    texts = texts_of("", "a", "bc", "def" * 10)
    proxy = TransformerProxy(texts, CPU, TINY)
    assert proxy.lengths.tolist() == [1, 2, 3, 31] and proxy.weights(np.array([3, 0])).tolist() == [30.0, 0.0]
    meter = TextMeter(proxy, read_words(pa.chunked_array([["", "a", "bc", "def" * 10]])), 1)
    monkeypatch.setattr(proxy_models, "ASKED_BYTES", 33)
    assert meter.limit(np.array([1, 3, 2]), 1).tolist() == [1, 3] and meter.limit(np.array([3]), 1).tolist() == [3]
    monkeypatch.setattr(proxy_models, "ASKED_BYTES", 1)
    assert meter.limit(np.array([3, 2]), 1).tolist() == [3]


def test_the_estimated_time_of_a_training_does_not_count_the_work_of_other_processes(monkeypatch):
    """Other processes had the core for a second of each training: that is no part of its own work."""

    def train(*_):
        time.sleep(0.2)

    monkeypatch.setattr(proxy_models, "train", train)
    steps = proxy_models.steps_of(SMALL, 100_000)
    assert proxy_models.seconds_of_training(100_000, 0, torch.device("cpu")) < 0.1 / proxy_models.TIMED_STEPS * steps
