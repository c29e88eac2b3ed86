"""Home: which corpus? Start it with `streamlit run app.py`."""

from datamask.dashboard.ui.frame import frame

frame("Home", "Which corpus?")
