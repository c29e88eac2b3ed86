"""The Map, the page one works on: which samples are kept, and where do they lie? The other pages stand in pages/.

Start it with `streamlit run app.py`, or on a corpus with `streamlit run app.py -- PATH...`, as `datamask open` does.
"""

import streamlit as st

if __name__ == "__main__":
    from datamask.pages.map import page

    page.show()
else:
    # the web server imports this file for the name `app`; as a page, the first of its own server, it is __main__
    from datamask.dashboard.server import server

    app = st.App(__file__, **server.around(__file__))
