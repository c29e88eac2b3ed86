"""Files that lie elsewhere: what an address names, and reading it without waiting for ever.

| module | job |
|---|---|
| `address` | an address as text: its parts, whether it holds a secret, whether it lies below another |
| `stores` | the table of schemes, each with the library that speaks to it: what is there, and bytes of it |
| `web` | requests to web servers: parts of files, without encodings and unsafe redirects |
| `patience` | a call to a store: time-outs, a few tries with pauses, Stop heard meanwhile, one sentence at the end |
| `remote` | a file elsewhere as a file of Python, which pyarrow reads like one of the disk; its stamp |

To add a scheme: its class in `stores` and its line in the table there, and what its query may say in `address`.
"""
