"""Ablation: which methods help, on which targets, and by how much. Light: pages and the command line read it.

| module | what |
|---|---|
| `question` | what is compared: methods, select ratio, targets, seeds |
| `result` | what came out, frozen, to and from JSON: losses, verdicts, regrets, the recommendation |
| `comparisons` | differences over seeds with intervals that hold all together, cross-fitted baselines, regrets |
| `methods` | a method as settings of a selection |
| `cost` | the ablation that one press starts, and its minutes |
| `wording` | the result in sentences |
| `offer` | what the stored results say of the current selection |

`datamask.analyses.ablation.compute` computes a result, its module `kept_study` keeps it.
"""
