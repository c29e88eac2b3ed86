"""Probing the features of an open corpus in the background, for the Data page."""

from __future__ import annotations

from datamask.corpus import Corpus
from datamask.corpus.feature_probe import probe_features
from datamask.work.job import Job
from datamask.work.worker import worker


def key(corpus: Corpus) -> str:
    """The name under which the worker knows the probe of this corpus."""
    return f"features {corpus.identity}"


def start(corpus: Corpus) -> Job:
    """Probe a corpus, or join the job that does. Its result is a `FeatureProbe`."""
    return worker().start(key(corpus), lambda job: probe_features(corpus, job.work), device="cpu")


def ask(corpus: Corpus) -> Job:
    """The job that probes a corpus or has done it, started at the first question."""
    return worker().find(key(corpus)) or start(corpus)
