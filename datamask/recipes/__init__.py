"""Recipes: a selection as a rule of a few numbers, applied to any number of rows.

At the optimum of pair-wise similarity a row is in exactly if ``a q - b x.s`` reaches a price, of the DiSF with fixed
scale if ``a q - c y'My`` does, for all but a few rows. So the selection of a sample is a rule for the corpus that it
was drawn from, and for shards that did not exist then.

| module | job |
|---|---|
| `recipe` | what a recipe is, and its JSON, every field checked |
| `fields` | reads such a record: types, shapes, finite numbers, in sentences |
| `quality` | quality columns with the transforms as they were in the run |
| `scoring` | the score of rows |
| `learned` | a selection of an open corpus, means of its members |
| `thresholds` | the threshold that leaves the fewest rows on the wrong side |
| `sharpening` | a direction nearer to the optimum than the members' mean |
| `derive` | from a selection to its recipe |
| `batches` | rows of shards, judged batch by batch |
| `apply` | whole shards judged: ids, masks, filtered shards; resumable by shard |
| `weights` | what a term's unit is worth in the joint value |
| `share_cut` | the threshold that keeps a share of the rows of shards |
| `stepping` | from the means of such a pass to the rule of the next |
| `sql` | the pair-wise rule for DuckDB |

Nothing here loads torch, or knows a run: `datamask.runs.recipe` makes a recipe of one.
"""

from datamask.recipes.recipe import Recipe, read_recipe, write_recipe

__all__ = ["Recipe", "read_recipe", "write_recipe"]
