"""Ablation: which methods help, on which targets, and by how much. Light: pages and the command line read it.

| module | what |
|---|---|
| `question` | what is compared: methods, select ratio, targets, seeds |
| `result` | what came out, frozen, to and from JSON: losses, verdicts, regrets, the recommendation |
| `comparisons` | differences over seeds with intervals that hold all together, cross-fitted baselines, regrets |
| `methods` | a method as settings of a selection |
| `cost` | the ablation that one press starts, and its minutes |
| `wording` | the result in sentences |
| `steering` | whether a result may color the lambda track, and why not |
| `offers` | what a result recommends for the current selection, as an offer |

`datamask.analyses.ablation.compute` computes a result, its module `kept_study` keeps it.
"""
