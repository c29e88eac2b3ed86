"""Ablation: which methods help, on which targets, and by how much. Light: pages and the command line read it.

| module | what |
|---|---|
| `question` | what is compared: methods, select ratio, targets, seeds |
| `result` | what came out, frozen, to and from JSON: losses, verdicts, regrets, the recommendation |
| `comparisons` | differences over seeds with intervals that hold all together, cross-fitted baselines, regrets |
| `wording` | the result in sentences |
| `steering` | whether a result may color the lambda track, and why not |

`datamask.evaluation.ablation` computes a result, `datamask.runs.ablations` keeps it.
"""
