"""Who can reach the server: this machine alone, or others too."""

from __future__ import annotations

import streamlit as st

ADDRESS = "127.0.0.1"
"""Where the server listens by default, as .streamlit/config.toml says."""

LOOPBACK = (ADDRESS, "::1", "localhost")


def on_loopback() -> bool:
    """Return whether none but this machine can reach the server."""
    return (st.get_option("server.address") or "") in LOOPBACK
