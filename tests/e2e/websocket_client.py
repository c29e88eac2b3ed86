"""A visitor without a browser: the websocket a page is drawn through, its elements and what they say."""

from __future__ import annotations

import time
from collections.abc import Mapping
from urllib.parse import urlencode, urlsplit

from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg
from websockets.sync.client import connect


class Visitor:
    """One session of a dashboard. A context manager; leaving it closes the websocket.

    Attributes:
        elements: the elements of the page last drawn, in the order they came, as Streamlit's messages.
    """

    def __init__(self, address: str, origin: str | None = None) -> None:
        host = urlsplit(address).netloc
        self.elements: list = []
        self.socket = connect(
            f"ws://{host}/_stcore/stream",
            origin=origin or f"http://{host}",
            subprotocols=["streamlit"],
            max_size=None,
            open_timeout=60,
            ping_interval=None,
        )

    def __enter__(self) -> Visitor:
        return self

    def __exit__(self, *_: object) -> None:
        self.socket.close()

    def vanish(self) -> None:
        """End as a browser that dies: without a word."""
        self.socket.socket.close()

    def draw(self, page: str = "", query: Mapping[str, str] | str = "", seconds: float = 120.0) -> None:
        """Draw a page, named as in the address, with the query of its address.

        Raises:
            TimeoutError: it was not drawn within that time.
        """
        self._ask(_rerun(page, query), seconds)

    def ask(self, page: str = "", query: Mapping[str, str] | str = "") -> None:
        """Ask for a page and do not wait for it, as a browser does whose user clicks on."""
        self.socket.send(_rerun(page, query).SerializeToString())

    def draw_until(self, wanted: str, page: str = "", seconds: float = 300.0) -> None:
        """Draw a page again until it says that, so many seconds at most: something is under way meanwhile."""
        deadline = time.monotonic() + seconds
        while True:
            self.draw(page)
            if wanted in self.text():
                return
            assert not self.faults() and time.monotonic() < deadline, self.text()
            time.sleep(0.2)

    def press(self, key: str, page: str = "", query: Mapping[str, str] | str = "", seconds: float = 120.0) -> None:
        """Press a button of the page last drawn, by its key.

        Raises:
            LookupError: there is none.
        """
        names = [element.button.id for element in self.elements if element.WhichOneof("type") == "button"]
        button = next((name for name in names if name.endswith(f"-{key}")), None)
        if button is None:
            raise LookupError(f"no button {key} among {names}")
        message = _rerun(page, query)
        state = message.rerun_script.widget_states.widgets.add()
        state.id, state.trigger_value = button, True
        self._ask(message, seconds)

    def _ask(self, message: BackMsg, seconds: float) -> None:
        self.elements = []
        self.socket.send(message.SerializeToString())
        deadline = time.monotonic() + seconds
        while True:
            forward = ForwardMsg()
            forward.ParseFromString(self.socket.recv(timeout=max(0.0, deadline - time.monotonic())))
            kind = forward.WhichOneof("type")
            if kind == "delta":
                self.elements.append(forward.delta.new_element)
            elif kind == "script_finished":
                return

    def faults(self) -> list[str]:
        """What the page says of a fault of the program: Streamlit's exception boxes and the dashboard's own."""
        boxes = [element.exception.message for element in self.elements if element.WhichOneof("type") == "exception"]
        return boxes + [text for text in self.alerts() if "nternal error" in text]

    def alerts(self) -> list[str]:
        """The sentences in coloured boxes."""
        return [element.alert.body for element in self.elements if element.WhichOneof("type") == "alert"]

    def text(self) -> str:
        """Everything the page's messages say, for looking for what must not be there."""
        return "\n".join(map(str, self.elements))


def _rerun(page: str, query: Mapping[str, str] | str) -> BackMsg:
    message = BackMsg()
    message.rerun_script.query_string = query if isinstance(query, str) else urlencode(query)
    message.rerun_script.page_name = page
    return message
