"""Parts of an ablation: what is held out, what is selected from the rest, and models that learn from a selection.

| module | what |
|---|---|
| `holdout` | the held-out text, and the corpus without it and its semantic duplicates |
| `selecting` | the selection at every lambda from such a corpus |
| `kept` | what is selected so far, so that a stopped ablation goes on where it was |
| `aiming` | examples that a person cares about: half of them steer, the other half judges |
| `sources` | the texts and examples of a target |
| `proxy_models` | models that learn from a selection: bigrams, or a small `transformer` |
"""
