"""Views: a run record or corpus in, a small table or a few words out. Pure; no streamlit, no torch.

One file per question: `overview` (what is in a corpus), `cost` (what a run will take), `convergence` (how it learned),
`outcome` (what it reached, or why not), `listing` (which runs there are, and which are under way), `provenance` (where
a selection comes from).
"""
