"""A page with one map for the browser test: two panels of its own, and a third that a fragment sends anew on demand."""

import numpy as np
import streamlit as st

from datamask.dashboard.map.canvas_map import Named, canvas_layer, canvas_map
from datamask.dashboard.map.layers import Number, Selection
from datamask.dashboard.map.parcels import ground_parcel
from datamask.dashboard.map.places import place
from datamask.dashboard.shell.chosen import KEY

N = 5000
rng = np.random.default_rng(0)
points = rng.normal(size=(N, 2)).astype(np.float32)
places = place(points, hexagons=False)
ground = ground_parcel(places, [f"sample {row}\nquality 1\n<b>text</b> of {row}" for row in places.drawn])
turned = st.toggle("Other colours")
first = Number.of("By height" if turned else "By width", points[:, int(turned)])
regions = canvas_map(
    "map",
    "scope",
    ground,
    places,
    [first, Number.of("Noise", rng.normal(size=N)), None],
    alt="Points",
    height=300,
    on_pick=lambda row: st.session_state.update({KEY: row}),
    names=[
        Named(7, "<b>right</b>", "43 %", 1.0, 0.0, "Right: 2,500 samples"),
        Named(3, "left", "12 %", -1.0, 0.0, "Left: 2,500 samples"),
        Named(5, "no room", "", -0.98, 0.02, "Covered by the one on the left"),
    ],
    opened=st.session_state.get("opened", []),
    on_name=lambda code: st.session_state.update(opened=[code]),
)


@st.fragment
def live() -> None:
    """The third panel, on its own."""
    step = st.session_state.setdefault("step", 0)
    st.button("Next", on_click=lambda: st.session_state.update(step=step + 1))
    canvas_layer("map", 2, Selection(f"Step {step}", points[:, 0] > step - 1), places)


live()
st.text(f"regions {len(regions)}, picked {st.session_state.get(KEY)}")
st.text(f"opened {st.session_state.get('opened', [])}")
