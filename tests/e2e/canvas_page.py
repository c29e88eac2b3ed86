"""A page with one map of three panels for the browser test; its parcels are lost at the press of a button."""

import numpy as np
import streamlit as st

N = 5000


class Rows:
    """As much of a corpus as a map asks for."""

    identity, fingerprint = "rows", "rows"


def draw() -> None:
    from datamask.dashboard.map import canvas_map
    from datamask.dashboard.map.canvas_map import Named
    from datamask.dashboard.map.layers import Number, Selection
    from datamask.dashboard.map.parcels import ground_parcel
    from datamask.dashboard.map.places import place
    from datamask.dashboard.server.parcels import parcels
    from datamask.process import held

    rng = np.random.default_rng(0)
    points = rng.normal(size=(N, 2)).astype(np.float32)
    places = place(points, hexagons=False)
    step = st.session_state.setdefault("step", 0)
    st.button("Next", on_click=lambda: st.session_state.update(step=step + 1))
    lost = st.button("Lose", on_click=lambda: st.session_state.update(step=step + 1))
    turned = st.toggle("Other colours")
    if lost:  # as if what is kept from here on were let go of before it is fetched
        parcels()._put = lambda *kept: None
    first = Number.of("By height" if turned else "By width", points[:, int(turned)])
    canvas_map.canvas_map(
        "map",
        held("rows of the test", Rows),
        "scope",
        ground_parcel(places, [f"sample {row}\nquality 1\n<b>text</b> of {row}" for row in places.drawn]),
        places,
        [first, Number.of("Noise", rng.normal(size=N)), Selection(f"Step {step}", points[:, 0] > step - 1)],
        alt="Points",
        height=300,
        on_pick=lambda row: st.session_state.update(picked=row),
        names=[
            Named(7, "<b>right</b>", 0.8, 0.6, "Right: 2,500 samples"),
            Named(3, "left", -1.0, -0.6, "Left: 2,500 samples"),
            Named(5, "no room", -0.98, -0.58, "Covered by the one on the left"),
        ],
        opened=st.session_state.get("opened", []),
        on_name=lambda code: st.session_state.update(opened=[code]),
    )
    vars(parcels()).pop("_put", None)
    st.text(f"regions {len(canvas_map.regions('scope'))}, picked {st.session_state.get('picked')}")
    st.text(f"opened {st.session_state.get('opened', [])}")


if __name__ == "__main__":
    draw()
else:
    from datamask.dashboard.server import server

    app = st.App(__file__, **server.around())
