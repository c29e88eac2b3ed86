"""The table: every option of a selection, in the order in which a command line names them."""

from __future__ import annotations

from dataclasses import dataclass

from datamask.options.kinds import (
    Choice,
    Components,
    Copies,
    Device,
    Flag,
    Folder,
    IdFile,
    Number,
    Quotas,
    Text,
    Tokens,
    Whole,
)
from datamask.options.option import Control, option, options_of
from datamask.options.quotas import Quota

WHAT, FIND, RULES = "What to select", "Method", "Rules"
LEARNING, BASELINES = "Learning masks", "Settings of the baselines"
BEYOND_MEMORY = "Corpora larger than memory"
TOPICS = (WHAT, FIND, RULES, LEARNING, BASELINES, BEYOND_MEMORY)
"""Titles of the options in help and reference, in order."""

SEARCHES = Choice({"auto": "Automatic", "exact": "Exact", "approximate": "Approximate, quicker"})
"""Ways to build the neighbor graph."""


@dataclass(frozen=True, kw_only=True)
class SelectionOptions:
    """Which subset of the corpus, and how it is found; of the learner's own options, None where it has not got one."""

    objective: str = option(
        Text(),
        "Diversity objective",
        "diversity objective: {objectives}; a weighted sum such as pairwise:0.7,facility:0.3; or "
        "module:Class, an objective of your own",
        "NAME",
        WHAT,
        common=True,
        default="facility",
        always=True,
        varied="",
        flags=("--objective", "--algorithm"),
        help="How diversity is measured. All objectives but DiSF (feature decorrelation) report a gap.",
    )
    lamb: float = option(
        Number("a number from 0 (diversity alone) to 1", 0, 1),
        "Balance λ",
        "lambda, the weight of quality: 1 is quality alone, 0 is diversity alone",
        "SHARE",
        WHAT,
        common=True,
        default=0.5,
        always=True,
        varied="λ",
        control=Control({"min_value": 0.0, "max_value": 1.0, "step": 0.05}, more=False, slider=True),
        help="At 0.5, 1 % of quality counts as much as 1 % of diversity.",
    )
    select_ratio: float = option(
        Number("between 0 and 1, both excluded", 0, 1, above=True, below=True),
        "Select ratio",
        "share of the rows to select",
        "SHARE",
        WHAT,
        common=True,
        default=0.3,
        always=True,
        varied="ratio",
        control=Control({"min_value": 0.0001, "max_value": 0.9999, "step": 0.05, "format": "%.4g"}, more=False),
        help="The share of the rows to keep.",
    )
    budget: float | None = option(
        Tokens(),
        "Token budget",
        "tokens to select, such as 150M or 1.5B, instead of a share of the rows; needs a length column",
        "TOKENS",
        WHAT,
        common=True,
        always=True,
        control=Control({"placeholder": "150M"}, more=False),
        help="Such as 150M or 1.5B.",
    )
    estimator: str = option(
        Text(),
        "Method",
        "method: auto, {estimators}. auto takes {auto}",
        "NAME",
        FIND,
        common=True,
        required=True,
        always=True,
        unset="auto",
        varied="",
        help="The method that *Solve* runs. *Learn masks* has its own settings.",
    )
    preset: str | None = option(
        Choice({"paper": "the paper's"}),
        "Preset",
        "paper: the settings of arXiv 2512.24265, which never change",
        "paper",
        FIND,
    )
    scale: str = option(
        Choice({"calibrated": "calibrated shares", "raw": "raw, as in the paper"}),
        "Scale of λ",
        "units of the terms that lambda weighs: calibrated (0 is random, 1 is the best found) or raw, as in the paper",
        "SCALE",
        WHAT,
        default="calibrated",
        varied="scale",
        control=Control(),
        help="Calibrated: λ weighs quality and diversity in percent. Raw: λ weighs their raw values.",
    )
    n_rollout: int | None = option(
        Whole(1, least={"reinforce": 2}),
        "Masks per step (G)",
        "masks to sample in each step",
        "G",
        LEARNING,
        owners={"counterfactual": 2, "reinforce": 128},
        varied="G",
        control=Control({"min_value": 1, "max_value": 4096, "step": 2}, more=False),
        help="How many candidate subsets (masks) each step samples and scores. The learner *Counterfactual* needs "
        "2. *REINFORCE*, the learner of the paper, uses 128.",
    )
    n_epochs: int | None = option(
        Whole(1),
        "Maximum steps",
        "maximum number of steps",
        "STEPS",
        LEARNING,
        owners={"counterfactual": 60, "reinforce": 5000, "relaxed": 60},
        varied="steps",
        control=Control({"min_value": 1, "max_value": 1_000_000, "step": 50}),
        help="Learning stops earlier when the selection no longer changes.",
    )
    partial: float | None = option(
        Number("a share above 0 and at most 1", 0, 1, above=True),
        "Batch share",
        "share of the rows in each step",
        "SHARE",
        LEARNING,
        owners={"counterfactual": 1.0, "reinforce": 0.1},
        varied="batch share",
        control=Control({"min_value": 0.001, "max_value": 1.0, "step": 0.1, "format": "%.3g"}),
        help="The share of the rows in each step. A small share is faster but noisier.",
    )
    max_lr: float | None = option(
        Number("a number above 0", 0, above=True),
        "First step size",
        "learning rate of the first step",
        "LR",
        LEARNING,
        owners={"counterfactual": 1.0, "reinforce": 10.0},
        varied="first step size",
        control=Control({"min_value": 0.0001, "max_value": 1000.0, "step": 0.5, "format": "%.4g"}),
        help="The step size falls from here to the last step size. If it is too large, the selection freezes "
        "too early.",
    )
    min_lr: float | None = option(
        Number("a number from 0 to --max_lr ({max_lr})", 0, "max_lr"),
        "Last step size",
        "learning rate of the last step",
        "LR",
        LEARNING,
        owners={"counterfactual": 0.05, "reinforce": 1.0},
        varied="last step size",
        control=Control({"min_value": 0.0, "max_value": 1000.0, "step": 0.05, "format": "%.4g"}),
    )
    init: str | None = option(
        Choice({"same": "all the same", "quality": "in proportion to quality"}),
        "Initial logits",
        "initial logits: same (all equal) or quality (in proportion to quality)",
        "HOW",
        LEARNING,
        owners={"counterfactual": "same", "reinforce": "quality"},
        varied="init",
        control=Control(),
        help="The higher the logit of a row, the more masks include the row.",
    )
    polish: str | None = option(
        Choice({"swaps": "swap rows while it helps", "none": "no"}),
        "Local search (swaps)",
        "local search after the solver: swaps or none",
        "HOW",
        LEARNING,
        listed="Polish",
        owners={"counterfactual": "swaps", "reinforce": "none", "relaxed": "swaps"},
        varied="polish",
        control=Control(),
        help="Swaps single rows at the end while the joint value rises.",
    )
    temperature: float | None = option(
        Number("a number of at least 0", 0),
        "Temperature",
        "weight of chance against quality, in standard deviations of quality; 0 is the same as top-quality",
        "T",
        BASELINES,
        owners={"soft-quality": 2.0},
        varied="temperature",
        control=Control({"min_value": 0.0, "max_value": 1000.0, "step": 0.5, "format": "%.4g"}),
        help="The weight of chance: a row is drawn in proportion to exp(quality / temperature), with quality in "
        "standard deviations. 0 is top quality, a large number is random.",
    )
    clusters: int | None = option(
        Whole(1),
        "Clusters",
        "number of k-means clusters with equal shares",
        "K",
        BASELINES,
        owners={"cluster-balanced": 100},
        varied="clusters",
        control=Control({"min_value": 1, "max_value": 10_000, "step": 50}),
        help="The number of k-means clusters with equal shares of the selection. Few clusters are broad topics; "
        "one cluster per row balances nothing.",
    )
    clip: float | None = option(
        Number("a share above 0 and at most 1", 0, 1, above=True),
        "At most of a cluster",
        "largest share of a cluster to select, rounded up to whole rows",
        "SHARE",
        BASELINES,
        owners={"cluster-balanced": 1.0},
        varied="clip",
        control=Control({"min_value": 0.001, "max_value": 1.0, "step": 0.1, "format": "%.3g"}),
        help="The largest share of a cluster to use. At 1 small clusters are used whole; lower values make the "
        "shares more proportional.",
    )
    inside: str | None = option(
        Choice({"random": "at random", "best": "the best by quality"}),
        "Inside a cluster",
        "rows to take first in a cluster: random, as in ClusterClip, or best, by quality",
        "HOW",
        BASELINES,
        owners={"cluster-balanced": "random"},
        varied="inside",
        control=Control(),
        help="Which rows of a cluster come first: random rows, as in the published method, or the best by quality.",
    )
    center: bool = option(
        Flag(),
        "Center the features",
        "subtract the mean of the corpus from the features, for embeddings whose cosines are all high",
        "",
        WHAT,
        listed="Features centered",
        default=False,
        control=Control(),
        help="For embeddings whose cosines are all high, such as E5.",
    )
    components: str | None = option(
        Components(),
        "Principal components",
        "leading principal components that disf, disf_fixed and vendi are defined on: a number, or all",
        "N",
        WHAT,
        unset="all; for vendi above 512 dimensions, 512",
    )
    prune: float = option(
        Number("a share from 0 to below 1", 0, 1, below=True),
        "Prune by quality first",
        "share of the rows to skip first, the worst by quality",
        "SHARE",
        RULES,
        listed="Pruned by quality first",
        default=0.0,
        varied="pruned",
        control=Control({"min_value": 0.0, "max_value": 0.99, "step": 0.1, "format": "%.3g"}),
        help="Removes this share of the rows, those of lowest quality, before selecting.",
    )
    collapse: str = option(
        Copies(),
        "Duplicates",
        "keep the best row of duplicates: none, exact (the same text; without a text column, the same features), a "
        "cosine such as 0.95 (semantic duplicates) or column:NAME (the groups of a column, such as MinHash groups)",
        "HOW",
        RULES,
        common=True,
        listed="Duplicates removed",
        default="none",
        varied="copies",
        control=Control(),
        help="Exact duplicates have the same text, or the same features in a corpus without texts. Pair-wise "
        "similarity and DiSF do not avoid them.",
    )
    pin: str | None = option(
        IdFile(),
        "Pinned ids",
        "file of ids that must be selected: parquet, CSV, JSON lines, or text with one id per line",
        "IDS",
        RULES,
    )
    ban: str | None = option(IdFile(), "Banned ids", "file of ids that must not be selected", "IDS", RULES)
    given: str | None = option(
        IdFile(),
        "Given ids",
        "file of ids that you already have; they count in every value, and only new rows are written",
        "IDS",
        RULES,
    )
    quotas: tuple[Quota, ...] = option(
        Quotas(),
        "Quotas",
        "lowest and highest share of the selection, or of --budget, for one value of a column; repeatable",
        "COLUMN=VALUE:LOW:HIGH",
        RULES,
        default=(),
        flags=("--quota",),
    )
    neighbors: str = option(
        SEARCHES,
        "Nearest rows",
        "neighbor graph: exact, approximate (its recall is measured), or auto (exact on a GPU, and on a CPU up to "
        "200,000 rows)",
        "HOW",
        FIND,
        listed="Neighbor graph",
        default="auto",
        control=Control(),
        help="Approximate is faster and misses about 1 in 100. Automatic is exact on a GPU, and on a CPU up to 200,000 "
        "rows.",
    )
    scratch_dir: str | None = option(
        Folder(),
        "Scratch folder",
        "folder for files with the features and neighbor lists; select from all rows there, even if they fit in memory",
        "FOLDER",
        BEYOND_MEMORY,
    )
    seed: int = option(
        Whole(0, 2**63 - 1, "2^63 - 1"),
        "Seed",
        "seed of masks, batches and ties",
        "N",
        FIND,
        default=0,
        varied="seed",
        control=Control({"min_value": 0, "max_value": 2**53 - 1, "step": 1}),
        help="The same seed on the same corpus gives the same selection.",
    )
    device: str = option(
        Device(),
        "Device",
        "device to compute on: auto, cpu, cuda or cuda:K",
        "DEVICE",
        FIND,
        default="auto",
        control=Control(),
        help="Auto uses a GPU if there is one; cuda:1 is the second GPU.",
    )


OPTIONS = options_of(SelectionOptions)
"""Every option by its name."""

LEARNER_OPTIONS = tuple(name for name, entry in OPTIONS.items() if entry.owners)
"""Options that only some estimators have."""
