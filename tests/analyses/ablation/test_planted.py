"""Each proxy model prefers what is planted: the good region to random rows, to duplicates of it, and to the trap."""

from __future__ import annotations

from datamask.analyses.ablation.compute.transformer import Size
from tests.making.planted import COPIES, GOOD, TRAP, mean_losses, trapped_corpus

QUICK = Size(layers=1, width=16, heads=1, context=64, batch=8, rate=3e-2)
SEEDS = 6


def test_bigrams_prefer_the_good_region_in_every_seed():
    for seed in range(SEEDS):
        corpus, selections, texts = trapped_corpus(seed)
        assert corpus.quality[selections[TRAP]].min() > corpus.quality[selections[GOOD]].max() - 1
        losses = mean_losses(corpus, selections, texts, "bigram", 4_000)
        assert losses[GOOD] < min(losses[COPIES], losses["random"]) and losses["random"] < losses[TRAP], (seed, losses)


def test_a_transformer_tells_the_good_region_from_the_trap():
    for seed in range(2):
        corpus, selections, texts = trapped_corpus(seed)
        losses = mean_losses(corpus, selections, texts[:80], "transformer", 5_000, QUICK)
        assert losses[GOOD] < losses["random"] < losses[TRAP], (seed, losses)
