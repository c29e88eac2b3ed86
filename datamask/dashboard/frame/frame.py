"""The frame of every page: a row with the menu, the open corpus and what is running, and the answer bar."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from urllib.parse import urlencode

import streamlit as st

from datamask.dashboard.data.openings import Opening
from datamask.dashboard.drawing import words
from datamask.dashboard.drawing.signs import signed
from datamask.dashboard.runs import listing
from datamask.dashboard.shell import session, theme
from datamask.dashboard.shell import view as views
from datamask.dashboard.shell.garbage import settled
from datamask.dashboard.workspace import answer_panel, keeping, preparing_panel
from datamask.dashboard.workspace import current as currently
from datamask.dashboard.workspace import workspace as workspaces
from datamask.dashboard.workspace.current import Current

PAGES: tuple[tuple[str, str, str], ...] = (
    ("app.py", "Map", ":material/scatter_plot:"),
    ("pages/frontier.py", "Frontier", ":material/show_chart:"),
    ("pages/runs.py", "Runs", ":material/play_circle:"),
    ("pages/compare.py", "Compare", ":material/compare_arrows:"),
    ("pages/evidence.py", "Evidence", ":material/balance:"),
    ("pages/data.py", "Data", ":material/database:"),
    ("pages/export.py", "Export", ":material/download:"),
)
"""Script, label and icon of each page, in the order of the menu. No help texts: their bubbles would stay after the
click and cover the next link."""

FOLDED = 2
"""The last pages, which stand under *More* in a window of at most 1,000 pixels."""

KEPT = ((0, 0), (2, 0), (1, 1), (0, 2))
"""Which of nine samples the mark shows as selected: (column, row)."""

LISTED = 3
"""Runs under way that the menu shows one by one; how many more there are stands below them."""

SHORT = 20
"""Signs of the title of work under way, which leave its bar and its buttons their room."""

MENU = "menu"
"""Key of the row on top."""

STYLE = """<style>
[data-testid="stMainBlockContainer"] {padding-left: 1rem; padding-right: 1rem}
[class*="st-key-live"] [data-stale="true"] {opacity: 1; transition: none}
[data-testid="stPageLink"] a:focus-visible {outline: 2px solid currentColor; outline-offset: -2px}
.st-key-menu {border-bottom: 1px solid var(--st-border-color, #8883); padding-bottom: 0.35rem}
div:has(> .st-key-menu_state) {min-width: min(100%, 400px)}
div:has(> .st-key-live) {flex: none; width: clamp(155px, 100vw - 1096px, 344px); height: 36px; overflow: hidden}
div:has(> .st-key-live):is(:hover, :focus-within) {overflow: visible; z-index: 9}
.st-key-live {background: light-dark(#FFFFFF, #12171C)}
.st-key-live p {white-space: nowrap; overflow: hidden; text-overflow: ellipsis}
.st-key-live :is(button, a) {min-height: 0; padding: 4px}
.st-key-live :is(button, a) p {position: absolute; width: 1px; height: 1px; clip-path: inset(50%)}
.st-key-menu_corpus p {white-space: nowrap; overflow: hidden; text-overflow: ellipsis}
div:has(> .st-key-menu_corpus) {flex: 0 1 auto; min-width: 0}
@media (min-width: 1001px) {div:has(> .st-key-menu_more) {display: none}}
@media (max-width: 1000px) {div:has(> .st-key-menu_last) {display: none}}
@media (min-width: 701px) {.st-key-menu_state {flex-wrap: nowrap}}
@media (min-width: 951px) {.st-key-menu {flex-wrap: nowrap} div:has(> .st-key-menu_state) {min-width: 0}}
@media (max-width: 1250px) {
.st-key-menu [data-testid="stPageLink"] a:not(.st-key-live a) span:has(> [data-testid="stIconMaterial"]) {display: none}
div:has(> .st-key-menu_mark) {flex: none; width: 28px; overflow: hidden} .st-key-menu_mark {min-width: 148px}
div:has(> .st-key-live) {width: clamp(130px, 100vw - 870px, 250px)}
.st-key-live p span {display: none}
}
@media (max-width: 1000px) {div:has(> .st-key-live) {width: 240px}}
@media (max-width: 700px) {
div:has(> .st-key-menu_state) {flex: 1; min-width: 0}
div:has(> .st-key-menu_links) {order: 1}
div:has(> .st-key-live) {position: fixed; bottom: 0; left: 0; width: 100%; height: auto; max-height: 8rem; z-index: 99;
padding: 4px 12px; overflow-y: auto; background: light-dark(#FFFFFF, #12171C); border-top: 1px solid #8883}
.st-key-live {width: 100%}
[data-testid="stColumn"]:has([class*="st-key-below_"]) {order: 1}
.st-key-compare {min-width: 100%}
}
.st-key-unseen_title {position: absolute; width: 1px; height: 1px; overflow: hidden; clip-path: inset(50%)}
button[kind="tertiary"][aria-expanded="true"] {color: inherit}
</style>"""
"""What the theme has no option for: room for the pictures; nothing that is redrawn every second may turn pale
meanwhile; the keyboard's place in the menu must not look like the page one is on; a line under the menu, whose height
stays when work starts: one line stands beside the corpus, more of it opens below under the pointer, and on a phone
it lies at the window's lower edge. In a narrow window the links have no icons, the mark no name and the work no time
left, and on a phone the corpus has one line, above the links, so that a wider font or a longer name wraps nothing; a
result comes first, and the form for the next one below it; the menu of compared runs has a line of its own; a
heading that only screen readers meet; and an open popover's name, which is darker than the dark page else. Pages work
without it."""

WORDS = (
    ("Quality score", "the number in your quality column; higher is better"),
    ("Quality", "mean quality score of the selected rows; 0 % is random, 100 % the best found for quality alone"),
    (
        "Diversity",
        "how well the selected rows cover the corpus; 0 % is random, 100 % the best found for diversity alone",
    ),
    ("Balance λ", "the weight of quality: 1 is quality alone, 0 is diversity alone"),
    ("Joint", "λ × quality + (1 − λ) × diversity, the value to maximize"),
    ("Gap", "proved limit on how much higher the joint value of any other selection can be"),
    ("Simple baseline", "a method without λ, such as top quality"),
    ("Target", "texts that the model should be good at, such as one source"),
    ("Ablation", "compares methods by a small proxy model that learns from each selection"),
    ("Level with random", "in the ablation, no significant difference from a random selection"),
    ("Largest regret", "how far a method is behind the best method, on its worst target"),
    ("Learned masks", "a method that scores candidate subsets (masks) and learns which rows to keep"),
    ("The paper", "DATAMASK, arXiv 2512.24265"),
    ("Select ratio", "the share of the rows to select"),
    ("Run", "a stored selection with its settings and results"),
    (
        "Keys on a map",
        "arrows move it, + and - zoom, 0 shows all of it; L, B and P choose lasso, box or moving; Enter makes a region "
        "of the view, Escape removes it; M reads the row nearest to the center, comma and full stop go to the previous "
        "and next row; F fills the window",
    ),
)
"""What the help of the menu explains on every page."""


DOTS = "".join(
    f'<circle cx="{5 + 9 * x}" cy="{5 + 9 * y}" r="3.3" fill="#2B86C5"/>'
    if (x, y) in KEPT
    else f'<circle cx="{5 + 9 * x}" cy="{5 + 9 * y}" r="2.7" fill="none" stroke="#8A949E" stroke-width="1.2"/>'
    for x in range(3)
    for y in range(3)
)
ICON = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 28 28">{DOTS}</svg>'
MARK = (
    '<svg xmlns="http://www.w3.org/2000/svg" width="148" height="28" viewBox="0 0 148 28">'
    f'{DOTS}<text x="37" y="20" font-family="system-ui, sans-serif" font-size="19" font-weight="600" '
    'fill="#2B86C5">datamask</text></svg>'
)
"""Nine samples, four of them kept, without and with the name; its two tones read on a light and on a dark ground. An
icon by name would be fetched from the web."""


def frame(title: str, question: str, about: str = "", welcome: str = "") -> Current | None:
    """Draw what every page shares. Call it first: it sets the page's configuration.

    Args:
        title: the page's name, as in the menu and the browser's tab; its heading is for screen readers alone.
        question: the one question the page answers, which the menu's help begins with.
        about: what the menu's help explains of this page, as Markdown.
        welcome: as of `answer_panel.show`.

    Returns:
        The current selection, which the page shows; None where no corpus is open.
    """
    settled()
    views.read()
    keeping.arrive(told=title == "Runs")  # before the menu, whose links name the run that is shown
    st.set_page_config(
        page_title=f"{title} · datamask", page_icon=ICON, layout="wide", initial_sidebar_state="collapsed"
    )
    st.html(STYLE + answer_panel.STYLE + theme.READABLE)
    opening = session.current_opening()
    opened = None if opening is None else opening.opened
    workspace = None if opened is None else workspaces.read(opened)
    views.write()
    # before the menu, which says what is begun
    known = None if workspace is None else currently.known(workspace, begin=True)
    with st.container(gap="xxsmall"):
        _menu(question, about, title, opening, known)
        current = answer_panel.show(known, welcome)
    if current is None and opening is not None and opening.ready:
        st.rerun()  # opened since: nothing on this page waits for it any more
    trouble = st.session_state.pop("trouble", None)
    if trouble:
        st.warning(words.sentence(trouble))
    return current


def _menu(question: str, about: str, heading: str, opening: Opening | None, known: Current | None) -> None:
    with st.container(key=MENU, horizontal=True, vertical_alignment="center", gap="small"):
        with st.container(key="menu_mark", width=148):
            st.image(MARK, width=148, alt="datamask")
        with st.container(
            key="menu_links", horizontal=True, vertical_alignment="center", width="content", gap="xxsmall"
        ):
            _links(PAGES[:-FOLDED])
            with st.container(key="menu_last", horizontal=True, width="content", gap="xxsmall"):
                _links(PAGES[-FOLDED:])
            with st.container(key="menu_more", width="content"), st.popover("More", type="tertiary"):
                _links(PAGES[-FOLDED:])
        with st.container(
            key="menu_state", horizontal=True, vertical_alignment="center", horizontal_alignment="right", gap="small"
        ):
            _running(known)
            with st.container(
                key="menu_corpus",
                horizontal=True,
                wrap=False,
                vertical_alignment="center",
                horizontal_alignment="right",
                gap="small",
            ):
                _corpus(opening)
                _help(question, about)
        with st.container(key="unseen_title", width=1):
            st.title(heading, anchor=False)
            theme.follow()


def _links(pages: Sequence[tuple[str, str, str]]) -> None:
    for script, label, icon in pages:
        views.page_link(script, label, icon, width="content")


def _corpus(opening: Opening | None) -> None:
    if opening is None:
        st.markdown("No corpus open yet", text_alignment="right")
    elif (corpus := opening.corpus) is not None:
        st.markdown(
            f"**{words.plain(opening.title, 40)}** · {words.of_total(len(corpus), corpus.provenance.total_rows)}",
            text_alignment="right",
        )
    elif opening.under_way:
        st.markdown(f"**{words.plain(opening.title, 40)}**", text_alignment="right")
        st.fragment(_opening_live, run_every=1.0)(opening.key)
    else:
        st.markdown(f"**{words.plain(opening.title, 40)}** · not open: {opening.job.state}", text_alignment="right")


def _help(question: str, about: str) -> None:
    with st.popover("Help", icon=":material/help:", type="tertiary", width="content"):
        st.markdown(f"**{question}**")
        if about:
            st.markdown(about)
        st.markdown("\n".join(f"- **{word}**: {meaning}" for word, meaning in WORDS))
        st.markdown(f"**Link to this view**: `{st.context.url}?{urlencode(views.now().address)}`")


def _opening_live(key: str) -> None:
    opening = session.all_openings().get(key)
    if opening is None or not opening.under_way:
        st.rerun()
    st.progress(min(opening.job.share, 1.0), text="opening …", width=120)


def _running(known: Current | None) -> None:
    long_work = signed()
    # the run that a sweep computes now is a line in the sweep's block: two Stops would leave open which one ends what
    busy = listing.apart(
        listing.running(session.store(), session.run_queue()),
        [sweep for job in long_work for sweep in job.sign.sweeps],
        [run_id for job in long_work for run_id in job.sign.runs],
    )
    # a run that ended before it could be listed has no line here whose end draws the page again
    if keeping.ended():
        st.rerun()
    prepared = [] if known is None else preparing_panel.parts(known)
    if busy or long_work or prepared:
        # those at work first: a queue may be long
        busy.sort(key=lambda job: job.state != "running")
        with st.container(key="live", gap="xxsmall"):
            if long_work:
                st.fragment(_signed_live, run_every=1.0)(tuple((job.key, job.sign.arrived()) for job in long_work))
            if busy:
                st.fragment(_running_live, run_every=1.0)(tuple(job.run_id for job in busy[:LISTED]))
            if len(busy) > LISTED:
                st.caption(f"and {len(busy) - LISTED:,} more", width="content")
            if known is not None and prepared:
                preparing_panel.show(known.workspace, prepared)


def _signed_live(drawn: tuple[tuple[str, int], ...]) -> None:
    """Long work that is no run; once one of them ends, or more of it has come, the whole page is drawn again."""
    settled()
    jobs = {(job.key, job.sign.arrived()): job for job in signed()}
    if set(jobs) != set(drawn):
        st.rerun()
    with st.container(gap="xxsmall"):
        for key, arrived in drawn:
            job = jobs[key, arrived]
            link = {**views.now().address, **job.sign.link}
            _under_way(key, job.sign.title, job.share, job.left, job.stop, (), job.sign.page, link)


def _running_live(drawn: tuple[str, ...]) -> None:
    """The jobs that were under way when the page was drawn; once one of them ends, the whole page is drawn again."""
    settled()
    busy = {job.run_id: job for job in listing.running(session.store(), session.run_queue(), only=drawn)}
    if set(busy) != set(drawn):
        st.rerun()
    with st.container(gap="xxsmall"):
        for run_id in drawn:
            job = busy[run_id]
            link = views.address_with(watched=run_id)
            _under_way(run_id, job.name, job.share, job.left, session.stop_run, (run_id,), "pages/runs.py", link)


def _under_way(
    key: str,
    title: str,
    share: float,
    left: float | None,
    stop: Callable[..., None],
    args: tuple[str, ...],
    page: str,
    link: dict[str, str],
) -> None:
    """Draw what is under way, in one line beside the link that watches it and the button that stops it.

    Args:
        key: of the buttons. title: of the work, shortened. share: how far it is, from 0 to 1. left: seconds, or None.
        stop, args: what Stop calls. page, link: where it is watched.
    """
    with st.container(horizontal=True, wrap=False, vertical_alignment="center", gap="xsmall"):
        soon = f":gray[, {words.roughly(left)} left]" if left is not None and left >= 1 else ""
        said = f"**{words.plain(title, SHORT)}** {words.percent(share)}{soon}"
        st.progress(min(max(share, 0.0), 1.0), text=said)
        views.page_link(page, "Watch", ":material/visibility:", address=link, width="content")
        st.button("Stop", key=f"halt_{key}", icon=":material/stop:", type="tertiary", on_click=stop, args=args)
