"""Before lambda: how many tokens are trained on, how many are owned, and the select ratio that follows."""

from __future__ import annotations

import pandas as pd
import streamlit as st

from datamask.corpus import Corpus
from datamask.dashboard import words
from datamask.dashboard.epochs import FREE, OPTIMAL, Training
from datamask.dashboard.ui import forms
from datamask.dashboard.views import overview
from datamask.errors import OptionError
from datamask.options.amounts import parse_tokens, tokens_text

TRAINED, OWNED, PARAMETERS = "epochs_trained", "epochs_owned", "epochs_parameters"
ABOUT = (
    "A selection that the training reads again and again is worth less each time. Up to four epochs of repeated text "
    "were worth nearly as much as new text (arXiv 2305.16264). Filters that are right for a short training are wrong "
    "for a long one (2404.07177); with enough compute over little text, no filter beat all of it (2605.19407); larger "
    "models want to be filtered less (2507.12466). These are other people's measurements on other corpora: your own "
    "downstream scores decide."
)


def show(corpus: Corpus) -> None:
    """Two fields, a third that need not be filled, and what each ratio means for them."""
    st.markdown("**How much should be kept?**", help=ABOUT)
    owned_here = _owned(corpus)
    with st.container(horizontal=True):
        trained = _tokens("Tokens to train on", TRAINED, "such as 10B", "What the model will read in all.")
        owned = _tokens(
            "Tokens owned",
            OWNED,
            tokens_text(owned_here) if owned_here else "such as 40B",
            "All that could be kept, before any of it is left out"
            + ("; empty: what the length column says of the corpus." if owned_here else "."),
        )
        parameters = _tokens("Model size", PARAMETERS, "may stay empty", "Parameters of the model, such as 1.5B.")
    owned = owned or owned_here
    if trained is None or owned is None:
        st.caption("With both, each select ratio has its epochs, and the forms begin with the one that is read once.")
        return
    training = Training(trained, owned, parameters)
    st.markdown(_sentence(training))
    table = pd.DataFrame(training.table(), columns=["select ratio", "tokens kept", "epochs", "which means"])
    table["select ratio"] = [words.percent(ratio) for ratio in table["select ratio"]]
    table["tokens kept"] = [words.short(tokens) for tokens in table["tokens kept"]]
    table["epochs"] = [f"{epochs:.2g}" for epochs in table["epochs"]]
    st.dataframe(table, hide_index=True, lazy=False, alt="Epochs over what each select ratio keeps")
    if training.ratio is not None:
        st.button(
            f"Begin the forms with {words.percent(training.ratio)}",
            key="epochs_take",
            icon=":material/input:",
            on_click=forms.take_ratio,
            args=(float(f"{training.ratio:.4g}"),),
            help="The select ratio of the next run. You can change it there.",
        )


def _owned(corpus: Corpus) -> float | None:
    """Tokens of the whole corpus by its length column, those of a sample scaled to all rows; None without lengths."""
    total = overview.token_total(corpus)
    return None if not total else total * max(corpus.provenance.total_rows, len(corpus)) / len(corpus)


def _tokens(label: str, key: str, placeholder: str, about: str) -> float | None:
    text = st.text_input(label, key=key, placeholder=placeholder, help=about, persist_state="session", width=190)
    if not text:
        return None
    try:
        return parse_tokens(text)
    except OptionError:
        st.caption(f"{label}: write a number above 0, such as 150M, 1.5B or 2T.")
        return None


def _sentence(training: Training) -> str:
    """What follows, in a sentence or two."""
    once, strictest = training.once, training.strictest
    if strictest is None:
        sentence = (
            f"Even all of it is read {training.epochs(1):.1f} times, more than the {FREE:.0f} that cost little: keep "
            "all but copies, or find more text. Filtering would hurt here."
        )
    elif once is None:
        sentence = (
            f"All of it is read {training.epochs(1):.1f} times. A ratio down to {words.percent(strictest)} stays "
            f"within {FREE:.0f} epochs; below, what is repeated is worth less each time."
        )
    else:
        sentence = (
            f"**{words.percent(once)}** is read just once. Down to {words.percent(strictest)} repetition costs little "
            f"(up to {FREE:.0f} epochs); above {words.percent(once)}, part of what is kept is never read."
        )
    if training.parameters is not None:
        share = training.trained / training.parameters
        side, toward = ("longer", "less") if share > OPTIMAL else ("shorter", "more")
        sentence += (
            f" {share:.3g} tokens per parameter: a {side} training than the {OPTIMAL:.0f} that are best for given "
            f"compute (arXiv 2203.15556), so rather filter {toward}."
        )
    return sentence
