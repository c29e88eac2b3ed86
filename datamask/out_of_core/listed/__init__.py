"""Facility location over all rows on lists that are mapped from disk, by the solver for memory. Loads torch.

| module | job |
|---|---|
| `whole_lists` | lists of blocks as whole arrays, forward and reverse, in steps of two bytes |
| `mapped_facility` | the objective on them: who covers whom, products from the rows |
| `solve` | ends of the scale, greedy and swaps, bound; where a search is, is kept |
"""
