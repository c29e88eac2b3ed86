"""Analyses, a folder each: what computes, tabulates, draws and shows one thing stands side by side.

The name of a file says what it does. `compute`, a file or a folder: the mathematics, which alone loads torch when it is
imported and knows no door. `tables`: records of runs or a corpus in, small tables and words out. `chart`: a table in, a
figure out. `panel`, or a name that ends so: what a page draws, and alone knows streamlit. `command`: the same answer on
the command line. What is called otherwise starts what takes long.

Charts are Plotly figures, which share `drawing.figures`. The one exception: curves that are drawn anew each second
while a run is at work (`curves`). Streamlit mounts a Plotly figure anew whenever it
changes, which flickers and loses what the pointer reads, so these are Vega-Lite specifications (plain dicts), whose
data come beside them.
"""
