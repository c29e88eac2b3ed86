"""A click on a link of the menu reaches its page, whatever the page that is being left asks for meanwhile.

Streamlit 1.67 folds what is asked of a session while its script runs into one request, for the page that the newest of
them names. A fragment whose timer comes due after the click, and `st.rerun` of the page that is being left, both name
the old page: the click has no effect.
"""

from __future__ import annotations

import functools
from dataclasses import replace

from streamlit.runtime.scriptrunner import get_script_run_ctx
from streamlit.runtime.scriptrunner_utils.script_requests import RerunData, ScriptRequests, ScriptRequestType

_MARK = "datamask_keeps_clicks"


def keep_clicks() -> None:
    """From now on the clicked page is kept; calling it twice changes nothing."""
    fold = getattr(ScriptRequests, "_request_rerun_locked", None)
    # another version of Streamlit may fold elsewhere
    if fold is None or hasattr(fold, _MARK):
        return

    @functools.wraps(fold)
    def folded(self: ScriptRequests, new_data: RerunData) -> bool:
        waiting = self._rerun_data
        if self._state == ScriptRequestType.RERUN and not waiting.fragment_id_queue and _stays(self, new_data):
            new_data = replace(
                new_data,
                page_script_hash=waiting.page_script_hash,
                page_name=waiting.page_name,
                query_string=waiting.query_string,
            )
        answer: bool = fold(self, new_data)
        return answer

    setattr(folded, _MARK, True)
    ScriptRequests._request_rerun_locked = folded  # type: ignore[method-assign]


def _stays(requests: ScriptRequests, new_data: RerunData) -> bool:
    """Whether a request asks for no other page: a fragment's, or one that the script makes for the page it draws."""
    if new_data.fragment_id or new_data.fragment_id_queue:
        return True
    context = get_script_run_ctx(suppress_warning=True)
    if context is None or context.script_requests is not requests:
        return False
    return new_data.page_script_hash == context.page_script_hash
