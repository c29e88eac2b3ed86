"""Before lambda: how many tokens are trained on, how many are owned, and the select ratio that follows."""

from __future__ import annotations

import pandas as pd
import streamlit as st

from datamask.analyses.epochs.training import FREE, OPTIMAL, Training
from datamask.corpus import Corpus
from datamask.dashboard.drawing import words
from datamask.dashboard.runs import cost, form_panel
from datamask.errors import OptionError
from datamask.options.amounts import parse_tokens, tokens_text

TRAINED, OWNED, PARAMETERS = "epochs_trained", "epochs_owned", "epochs_parameters"
ABOUT = "Up to four epochs of repeated text are worth nearly as much as new text (arXiv 2305.16264)."


def show(corpus: Corpus) -> None:
    """Two fields, a third that need not be filled, and what each ratio means for them."""
    st.markdown("**How much to keep?**", help=ABOUT)
    measured = _owned(corpus)
    with st.container(horizontal=True):
        texts = {
            "Tokens to train on": _field(
                "Tokens to train on", TRAINED, "such as 10B", "Tokens that the model reads in training."
            ),
            "Available tokens": _field(
                "Available tokens",
                OWNED,
                tokens_text(measured) if measured else "such as 40B",
                "Tokens of all rows" + (". If empty: the sum of the length column." if measured else "."),
            ),
            "Model size": _field("Model size", PARAMETERS, "optional", "Parameters, such as 1.5B."),
        }
    amounts = []
    for label, text in texts.items():
        try:
            amounts.append(parse_tokens(text) if text else None)
        except OptionError:
            st.caption(f"{label} must be a number above 0, such as 150M, 1.5B or 2T.")
            return
    trained, owned, parameters = amounts
    owned = owned or measured
    if trained is None or owned is None:
        fields = {"the tokens to train on": trained, "the available tokens": owned}
        missing = " and ".join(name for name, amount in fields.items() if amount is None)
        st.caption(f"Enter {missing}.")
        return
    training = Training(trained, owned, parameters)
    st.markdown(_sentence(training))
    table = pd.DataFrame(training.table(), columns=["select ratio", "tokens kept", "epochs", "which means"])
    table["select ratio"] = [words.percent(ratio) for ratio in table["select ratio"]]
    table["tokens kept"] = [words.short(tokens) for tokens in table["tokens kept"]]
    table["epochs"] = [f"{epochs:.2g}" for epochs in table["epochs"]]
    st.caption("Assumes that selected rows are as long as the others.")
    st.dataframe(table, hide_index=True, lazy=False, alt="Epochs of each select ratio")
    if training.ratio is not None:
        st.button(
            f"Use ratio {words.percent(training.ratio)} for the next run",
            key="epochs_take",
            icon=":material/input:",
            on_click=form_panel.take_ratio,
            args=(float(f"{training.ratio:.4g}"),),
        )


def _owned(corpus: Corpus) -> float | None:
    """Tokens of the whole corpus by its length column, those of a sample scaled to all rows; None without lengths.

    Rows that cannot be used are not owned: they can never be kept.
    """
    total, provenance = cost.token_total(corpus), corpus.provenance
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
            f"Training reads all rows {training.epochs(1):.1f} times, more than the {FREE:.0f} that cost little. "
            "Keep all rows except duplicates, or find more text."
        )
    elif once is None:
        sentence = (
            f"Training reads all rows {training.epochs(1):.1f} times. Ratios down to {words.percent(strictest)} "
            f"stay within {FREE:.0f} epochs; at lower ratios repeated rows are worth less."
        )
    else:
        sentence = (
            f"Training reads **{words.percent(once)}** of the rows once. Down to {words.percent(strictest)}, "
            f"repetition costs little (at most {FREE:.0f} epochs); above {words.percent(once)}, some kept rows "
            "are never read."
        )
    if training.parameters is not None:
        share = training.trained / training.parameters
        sentence += (
            f" That is {share:.3g} tokens per parameter; {OPTIMAL:.0f} are optimal for a fixed compute (arXiv "
            "2203.15556)."
        )
    return sentence
