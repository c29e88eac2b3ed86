"""Long work: what it is done in (`context`), and how its result is kept: on disk (`kept`), by one
worker (`locks`), within the memory there is (`ledger`).

Knows none of its users.

| module | holds |
|---|---|
| `context` | `Work`: where long work asks whether to go on, and says how far it is |
| `kept` | `Kept`: a result that takes long, found or computed once, checked and kept; `Progress` |
| `cache` | `Cache`: all results under a folder: how much they are, freeing them |
| `result_file` | one result as a file: `Entry`, its name, `Content`, what it holds |
| `ledger` | `Ledger`: who holds how many bytes of this process's memory, and who has to wait |
| `locks` | a lock over threads and processes |
"""
