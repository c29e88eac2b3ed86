"""Views: a run record or corpus in, a small table or a few words out. Pure; no streamlit, no torch.

One file per subject: `convergence` (the learning curve and its references), `listing` (the runs and what state they
are in), `outcome` (what a finished run says), `overview` (a corpus at a glance).
"""
