"""Runs: the folder one run lives in, the work itself, and who does it when.

`store` reads run folders and states their contract; `writer` is the one module that writes them; `locks`, `status` and
`formats` are its small parts. `execute` runs corpus and learner into a folder, the one module that knows them all;
`attempt` does that once and lets nothing escape; `run_queue` gives runs to background threads; `exports` makes files to
take home. Only `execute` loads torch.
"""
