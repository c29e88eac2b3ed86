"""Which lambda? Selections over lambda, ratio and objective, judged by text that none of them was made from.

| module | what |
|---|---|
| `holdout` | the held-out text, and the corpus without it and its near-copies, five times over |
| `selecting` | the selection at every lambda from such a corpus |
| `kept` | what is selected so far, so that a stopped search goes on where it was |
| `aiming` | examples that a person cares about: half of them steer, the other half judges |
| `trial` | what a question needs: rows and quality to select by, what is held out, who judges |
| `judges` | who judges: text, or features where examples have no texts |
| `proxy_models` | models that learn from a selection: bigrams, or a small `transformer` |
| `measuring` | what each selection teaches: one number per held-out text |
| `statistics` | differences with intervals, the best lambda chosen on one half and reported on the other |
| `wording` | the result in sentences |
| `study` | all of it, from a question to a plain record |

The rules: held-out texts and their near-copies leave the corpus *before* anything is selected; every selection trains
on equally many words, drawn at random from its texts; lambda is chosen on one half of the target and reported on the
other, with cuts of its own; a target made from the optimised quality is called circular and recommends nothing.
"""

from datamask.evaluation.lambdas.study import which_lambda

__all__ = ["which_lambda"]
