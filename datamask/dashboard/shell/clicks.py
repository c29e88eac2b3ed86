"""What a visitor clicks is done, whatever else the session is asked for meanwhile.

Streamlit 1.67 loses a click in two ways:

- It folds what is asked of a session while its script runs into one request, for the page that the newest of them
  names. A fragment whose timer comes due after a click on a link, and `st.rerun` of the page that is being left, both
  name the old page: the click has no effect.
- It gives up a drawing at any access to the session's state once something newer is asked for, also while the callbacks
  of the widgets run, or just before. A button counts as pressed in one drawing alone: the press has no effect.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from streamlit.runtime.scriptrunner import get_script_run_ctx
from streamlit.runtime.scriptrunner_utils.script_requests import RerunData, ScriptRequests, ScriptRequestType
from streamlit.runtime.state import SafeSessionState

_MARK = "datamask_keeps_clicks"


def keep_clicks() -> None:
    """From now on the clicked page is kept, and callbacks run to their end; calling it twice changes nothing."""
    # another version of Streamlit may do it elsewhere
    if (fold := getattr(ScriptRequests, "_request_rerun_locked", None)) is not None and not hasattr(fold, _MARK):
        ScriptRequests._request_rerun_locked = _keeping_page(fold)  # type: ignore[method-assign, assignment]
    call = getattr(SafeSessionState, "on_script_will_rerun", None)
    if call is not None and not hasattr(call, _MARK):
        SafeSessionState.on_script_will_rerun = _to_the_end(call)  # type: ignore[method-assign]


def _keeping_page(fold: Callable[[ScriptRequests, RerunData], bool]) -> Callable[[ScriptRequests, RerunData], bool]:
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
        return fold(self, new_data)

    setattr(folded, _MARK, True)
    return folded


def _to_the_end(call: Callable[..., None]) -> Callable[..., None]:
    @functools.wraps(call)
    def called(self: SafeSessionState, *args: Any, **kwargs: Any) -> None:
        # by the script's own thread, before any other may draw beside it; Streamlit itself looks once they have run
        give_up = self._yield_callback
        object.__setattr__(self, "_yield_callback", lambda: None)
        try:
            call(self, *args, **kwargs)
        finally:
            object.__setattr__(self, "_yield_callback", give_up)

    setattr(called, _MARK, True)
    return called


def _stays(requests: ScriptRequests, new_data: RerunData) -> bool:
    """Whether a request asks for no other page: a fragment's, or one that the script makes for the page it draws."""
    if new_data.fragment_id or new_data.fragment_id_queue:
        return True
    context = get_script_run_ctx(suppress_warning=True)
    if context is None or context.script_requests is not requests:
        return False
    return new_data.page_script_hash == context.page_script_hash
