"""Out of core: selections from all rows of a corpus that does not fit into memory.

The shards are read once, into raw files that every later pass reads in their place.

| module | job |
|---|---|
| `whole_corpus` | all rows of a corpus, not held: shards, columns, how features and quality are made |
| `scratch` | its raw files: written shard by shard, resumable; read by ranges, from any process |

Nothing here loads torch, or knows a run: `datamask.runs` does such a run.
"""
