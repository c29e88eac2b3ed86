"""Before lambda: how many tokens are trained on, how many are owned, and the select ratio that follows."""

from __future__ import annotations

import pandas as pd
import streamlit as st

from datamask.corpus import Corpus
from datamask.dashboard.analyses.epochs.training import FREE, OPTIMAL, Training
from datamask.dashboard.analyses.overview import tables as overview
from datamask.dashboard.drawing import words
from datamask.dashboard.runs import form_panel
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
    measured = _owned(corpus)
    with st.container(horizontal=True):
        texts = {
            "Tokens to train on": _field(
                "Tokens to train on", TRAINED, "such as 10B", "What the model will read in all."
            ),
            "Tokens owned": _field(
                "Tokens owned",
                OWNED,
                tokens_text(measured) if measured else "such as 40B",
                "All that could be kept, before any of it is left out"
                + ("; empty: what the length column says of the corpus." if measured else "."),
            ),
            "Model size": _field("Model size", PARAMETERS, "may stay empty", "Parameters of the model, such as 1.5B."),
        }
    amounts = []
    for label, text in texts.items():
        try:
            amounts.append(parse_tokens(text) if text else None)
        except OptionError:
            st.caption(f"{label}: write a number above 0, such as 150M, 1.5B or 2T.")
            return
    trained, owned, parameters = amounts
    owned = owned or measured
    if trained is None or owned is None:
        st.caption("With both, each select ratio has its epochs; one of them is read just once.")
        return
    training = Training(trained, owned, parameters)
    st.markdown(_sentence(training))
    table = pd.DataFrame(training.table(), columns=["select ratio", "tokens kept", "epochs", "which means"])
    table["select ratio"] = [words.percent(ratio) for ratio in table["select ratio"]]
    table["tokens kept"] = [words.short(tokens) for tokens in table["tokens kept"]]
    table["epochs"] = [f"{epochs:.2g}" for epochs in table["epochs"]]
    st.caption("Tokens kept: if what is kept is as long as the rest. A selection may prefer short or long samples.")
    st.dataframe(table, hide_index=True, lazy=False, alt="Epochs over what each select ratio keeps")
    if training.ratio is not None:
        st.button(
            f"Begin the form of Runs with {words.percent(training.ratio)}",
            key="epochs_take",
            icon=":material/input:",
            on_click=form_panel.take_ratio,
            args=(float(f"{training.ratio:.4g}"),),
            help="The select ratio of the next run, a share of the rows. You can change it there.",
        )


def _owned(corpus: Corpus) -> float | None:
    """Tokens of the whole corpus by its length column, those of a sample scaled to all rows; None without lengths.

    Rows that cannot be used are not owned: they can never be kept.
    """
    total, provenance = overview.token_total(corpus), corpus.provenance
    if not total:
        return None
    return total * max(provenance.total_rows, len(corpus)) / max(provenance.rows_read, len(corpus))


def _field(label: str, key: str, placeholder: str, about: str) -> str:
    return st.text_input(label, key=key, placeholder=placeholder, help=about, persist_state="session", width=190)


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
        sentence += (
            f" That is {share:.3g} tokens per parameter; {OPTIMAL:.0f} spend a given compute best (arXiv 2203.15556), "
            "and larger models want to be filtered less."
        )
    return sentence
