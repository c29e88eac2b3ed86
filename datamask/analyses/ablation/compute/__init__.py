"""Ablation, computed: methods select from rows of each seed, and a proxy model says what the targets gain.

| module | what |
|---|---|
| `contestants` | the methods as selections: simple baselines, joint methods, objectives over lambda |
| `parts` | rows of each seed: whole families of near-duplicates, no row in two seeds |
| `targets` | held-out rows of label values, regions or one kind; own texts; examples of which half scores |
| `meters` | what a selection is worth to held-out texts, or to held-out features where there are no texts |
| `selecting` | the selection at every lambda from what is not held out |
| `aiming` | examples that a person cares about: half of them steer, the other half judges |
| `sources` | the texts and examples of a target |
| `proxy_models` | models that learn from a selection: bigrams, or a small `transformer` |
| `kept` | what is selected so far, so that a stopped ablation goes on where it was |
| `study` | all of it, from a question to `datamask.ablation.result.AblationResult` |
| `kept_study` | the answer of a corpus, found or computed and kept beside its runs |

Held-out rows and their near-duplicates leave before anything is selected. Every method trains the proxy model on
equally many words, or is measured by equally many rows where there is nothing to count.
"""

from datamask.analyses.ablation.compute.study import ablate

__all__ = ["ablate"]
