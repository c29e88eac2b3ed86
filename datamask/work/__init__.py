"""Long work whose result is kept: results on disk (`cache`), one worker at a time (`locks`). Knows none of its users.

| module | holds |
|---|---|
| `cache` | `Cache`: keep and find results, how much they are, freeing them |
| `result_file` | one result as a file: `Entry`, its name, `Content`, what it holds, and the checks when it is read |
| `locks` | a lock over threads and processes |
"""
