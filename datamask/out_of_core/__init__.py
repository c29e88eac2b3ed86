"""Out of core: selections from all rows of a corpus that does not fit into memory.

The shards are read once, into raw files that every later pass reads in their place.

| module | job |
|---|---|
| `whole_corpus` | all rows of a corpus, not held: shards, columns, how features and quality are made |
| `scratch`, `scratch_writing` | its raw files: read by ranges, from any process; written shard by shard, resumable |
| `solvers`, `solution` | the table: who solves what over all rows, and what a solver is given; what it gives back |
| `streamed_dual`, `rounding` | pair-wise similarity and DiSF with fixed scale, by passes; rows at the threshold |
| `scratch_passes` | one pass, in threads or by tasks of an engine |
| `feature_moments` | means and deviations of all rows |
| `scale_ends`, `exact_values` | ends of the scales; values and bounds on the rows as the shards have them |
| `row_rules` | pins, bans, given rows, quotas and budget, by row |
| `facility` | facility location over all rows, on their neighbor lists |
| `facility_values` | what the lists hold, and what cannot be weighed on them |
| `listed` | greedy, swaps and bound on the lists of all rows, mapped from disk |
| `cells` | its blocks of neighbouring cells: which phases of tasks there are, and in which order |
| `tasks` | what tasks share: each makes one part of `work.kept.Parts`, once |
| `partition`, `neighbour_lists` | tasks: rows into blocks; the nearest rows of each row, across blocks |
| `sampled_rows` | tasks: what the lists leave out and how near the members are, on uniform samples |
| `engines` | who does tasks |
| `plan`, `probe` | the forecast of a run, and what it measures on some rows |

Importing these modules does not load torch, except for `listed`. None of them uses run folders: `datamask.runs` does.
"""
