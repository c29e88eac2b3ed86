"""Selections by passes, from all rows of a corpus that does not fit into memory: pair-wise similarity, DiSF with fixed
scale and their sums.

The shards are read once, into raw files that every later pass reads in their place.

| module | job |
|---|---|
| `whole_corpus` | all rows of a corpus, not held: shards, columns, how features and quality are made |
| `scratch`, `scratch_writing` | its raw files: read by ranges, from any process; written shard by shard, resumable |
| `solvers`, `solution` | who solves what over all rows; the selection by passes, and what it comes to |
| `streamed_dual`, `rounding` | pair-wise similarity and DiSF with fixed scale, by passes; rows at the threshold |
| `scratch_passes` | one pass, in threads |
| `feature_moments` | means and deviations of all rows |
| `scale_ends`, `exact_values` | ends of the scales; values and bounds on the rows as the shards have them |
| `row_rules` | pins, bans and given rows |
| `plan`, `probe` | the forecast of a run, and what it measures on some rows |

Importing these modules does not load torch. None of them uses run folders: `datamask.runs` does.
"""
