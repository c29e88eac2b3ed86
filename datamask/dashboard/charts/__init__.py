"""Charts: a view's table in, a figure out. No streamlit.

Live curves are Vega-Lite specifications (plain dicts), because a Plotly figure is mounted anew whenever it changes and
so flickers and forgets its zoom; maps and scoreboards are Plotly figures.
"""
