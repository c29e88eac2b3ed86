"""The table: every option of a selection, in the order in which a command line names them."""

from __future__ import annotations

from dataclasses import dataclass

from datamask.options.kinds import Choice, Copies, Device, Flag, Folder, IdFile, Number, Quotas, Text, Tokens, Whole
from datamask.options.option import Control, option, options_of
from datamask.options.quotas import Quota

WHAT, FIND = "what to select", "how to find it"

SEARCHES = Choice({"auto": "Automatic", "exact": "Exact", "approximate": "Approximate, quicker"})
"""How the neighbour graph may be asked for."""


@dataclass(frozen=True, kw_only=True)
class SelectionOptions:
    """Which subset of the corpus, and how it is found; of the learner's own options, None where it has not got one."""

    objective: str = option(
        Text(),
        "Diversity objective",
        "diversity objective: {objectives}, the paper's names, or a sum such as pairwise:0.7,facility:0.3; "
        "module:Class is one of your own",
        "NAME",
        WHAT,
        default="facility",
        always=True,
        varied="",
        flags=("--objective", "--algorithm"),
        help="What diversity means in this run. Each of them sees something else; try more than one. "
        "Facility location, pair-wise similarity and DiSF with fixed scale come with a bound that no "
        "selection exceeds; DiSF and graph cut have none.",
    )
    lamb: float = option(
        Number("a number from 0 (diversity alone) to 1", 0, 1),
        "Balance λ",
        "lambda: 1 is quality alone, 0 diversity alone",
        "SHARE",
        WHAT,
        default=0.5,
        always=True,
        varied="λ",
        help="An exchange rate: 1 looks at quality alone, 0 at diversity alone. At 0.5 one point of quality, on a "
        "scale from a random subset (0) to the best one (100), weighs as much as one point of diversity.",
    )
    select_ratio: float = option(
        Number("between 0 and 1, both excluded", 0, 1, above=True, below=True),
        "Select ratio",
        "share of the rows to select",
        "SHARE",
        WHAT,
        default=0.3,
        always=True,
        varied="ratio",
        help="Share of the corpus to keep, strictly between 0 and 1. Exactly this many rows are selected.",
    )
    budget: float | None = option(
        Tokens(),
        "Token budget",
        "tokens to fill, such as 150M or 1.5G, instead of a share of the rows; needs a length column",
        "TOKENS",
        WHAT,
        always=True,
        help="Tokens to fill, such as 150M or 1.5G. How many rows that is follows from their lengths.",
    )
    estimator: str = option(
        Text(),
        "Estimator",
        "auto, {estimators} (auto: {auto})",
        "NAME",
        FIND,
        required=True,
        always=True,
        varied="",
        help="How the selection is found. Automatic takes the quickest that comes with a proof: Relaxed for "
        "facility location alone and for sums of concave objectives, else Counterfactual. The baselines learn "
        "nothing and are there to be compared with. The paper preset is the published quick-test setting; it "
        "cannot be changed.",
    )
    preset: str | None = option(
        Choice({"paper": "the paper's"}),
        "Preset",
        "paper: the setting of arXiv 2512.24265, which never changes",
        "paper",
        FIND,
    )
    scale: str = option(
        Choice({"calibrated": "calibrated shares", "raw": "raw, as in the paper"}),
        "Scale of λ",
        "calibrated or raw: in which units lambda balances",
        "SCALE",
        WHAT,
        default="calibrated",
        varied="scale",
        control=Control(),
        help="Calibrated: λ weighs shares of the attainable gain, so that it means the same on every corpus. Raw: λ "
        "weighs the bare values, as in the paper; one of them then usually drowns the other.",
    )
    n_rollout: int | None = option(
        Whole(1, least={"reinforce": 2}),
        "Masks per step (G)",
        "masks sampled per step",
        "G",
        FIND,
        owners={"counterfactual": 2, "reinforce": 128},
        varied="G",
        control=Control({"min_value": 1, "max_value": 4096, "step": 2}),
        help="G, the group size: how many candidate subsets (masks) are sampled and scored in each step. More of "
        "them give steadier steps and take longer. 2 is enough with exact credit (Counterfactual); the "
        "paper's REINFORCE uses 128.",
    )
    n_epochs: int | None = option(
        Whole(1),
        "Steps, at most",
        "a ceiling on update steps",
        "STEPS",
        FIND,
        owners={"counterfactual": 60, "reinforce": 5000, "relaxed": 60, "blocks": 4},
        varied="steps",
        control=Control({"min_value": 1, "max_value": 1_000_000, "step": 50}),
        help="A ceiling on update steps; the learner may stop earlier, once its selection no longer changes.",
    )
    partial: float | None = option(
        Number("a share above 0 and at most 1", 0, 1, above=True),
        "Batch share",
        "share of the rows in a step",
        "SHARE",
        FIND,
        owners={"counterfactual": 1.0, "reinforce": 0.1},
        varied="batch share",
        control=Control({"min_value": 0.001, "max_value": 1.0, "step": 0.1, "format": "%.3g"}),
        help="Share of the rows that one step looks at. Small batches are quick, but each step then knows less.",
    )
    max_lr: float | None = option(
        Number("a number above 0", 0, above=True),
        "First step size",
        "learning rate of the first step",
        "LR",
        FIND,
        owners={"counterfactual": 1.0, "reinforce": 10.0},
        varied="first step size",
        control=Control({"min_value": 0.0001, "max_value": 1000.0, "step": 0.5, "format": "%.4g"}),
        help="Step size at the beginning; it falls in a straight line to the last step size. Too large, and the "
        "selection freezes before it has learned anything.",
    )
    min_lr: float | None = option(
        Number("a number from 0 to --max_lr ({max_lr})", 0, "max_lr"),
        "Last step size",
        "learning rate of the last step",
        "LR",
        FIND,
        owners={"counterfactual": 0.05, "reinforce": 1.0},
        varied="last step size",
        control=Control({"min_value": 0.0, "max_value": 1000.0, "step": 0.05, "format": "%.4g"}),
        help="Step size at the end.",
    )
    init: str | None = option(
        Choice({"same": "all the same", "quality": "in proportion to quality"}),
        "Logits start",
        "first logits: same or quality",
        "HOW",
        FIND,
        owners={"counterfactual": "same", "reinforce": "quality"},
        varied="init",
        control=Control(),
        help="Where the logits start: all the same, or in proportion to quality.",
    )
    score: str | None = option(
        Choice({"mask": "by membership, as in the paper", "exact": "by the draw's probability"}),
        "Credit of a draw",
        "how reinforce credits a draw: mask, as in the paper, or exact, by the gradient of its log-probability",
        "HOW",
        FIND,
        owners={"reinforce": "mask"},
        varied="score",
        control=Control(),
        help="How a sampled subset's value reaches its rows. By membership is the paper's step, an approximation of "
        "the gradient; by the draw's own probability, the step is the gradient in the mean.",
    )
    readout: str | None = option(
        Choice({"top": "the strongest rows", "sample": "one last draw"}),
        "Final subset",
        "last logits to subset: top or sample",
        "HOW",
        FIND,
        owners={"counterfactual": "top", "reinforce": "top"},
        varied="readout",
        control=Control(),
        help="How the final subset is read off the logits: the strongest rows, or one last random draw.",
    )
    polish: str | None = option(
        Choice({"swaps": "swap rows while it helps", "none": "no"}),
        "Polish at the end",
        "swaps after learning: swaps or none",
        "HOW",
        FIND,
        listed="Polish",
        owners={"counterfactual": "swaps", "reinforce": "none", "relaxed": "swaps", "blocks": "swaps"},
        varied="polish",
        control=Control(),
        help="After learning, swap single rows in and out for as long as that raises the value. Quick, and it never "
        "makes a selection worse.",
    )
    temperature: float | None = option(
        Number("a number of at least 0", 0),
        "Temperature",
        "how much chance has a say beside quality, in its standard deviations; 0: none, as top-quality",
        "T",
        FIND,
        owners={"soft-quality": 2.0},
        varied="temperature",
        control=Control({"min_value": 0.0, "max_value": 1000.0, "step": 0.5, "format": "%.4g"}),
        help="How much chance has a say beside quality, which is counted in standard deviations: a sample is drawn in "
        "proportion to exp(quality / temperature). 0 is top quality, a large number random. QuRating's models were "
        "trained at 1 and 2.",
    )
    clusters: int | None = option(
        Whole(1),
        "Clusters",
        "k-means clusters that share equally, at most as many as there are rows",
        "K",
        FIND,
        owners={"cluster-balanced": 100},
        varied="clusters",
        control=Control({"min_value": 1, "max_value": 10_000, "step": 50}),
        help="How many k-means clusters share the selection equally. With few of them they are broad topics; with as "
        "many as there are rows every sample is a cluster, and nothing is balanced.",
    )
    clip: float | None = option(
        Number("a share above 0 and at most 1", 0, 1, above=True),
        "At most of a cluster",
        "share of a cluster that may be used, rounded up to whole rows",
        "SHARE",
        FIND,
        owners={"cluster-balanced": 1.0},
        varied="clip",
        control=Control({"min_value": 0.001, "max_value": 1.0, "step": 0.1, "format": "%.3g"}),
        help="Share of a cluster that may be used. At 1 small clusters are taken whole; lower, equal shares turn into "
        "proportional ones, which they are at the select ratio itself.",
    )
    inside: str | None = option(
        Choice({"random": "at random", "best": "the best by quality"}),
        "Inside a cluster",
        "which rows of a cluster come first: random, as in ClusterClip, or best, by quality",
        "HOW",
        FIND,
        owners={"cluster-balanced": "random"},
        varied="inside",
        control=Control(),
        help="Which samples of a cluster are taken first: random ones, as the published method does, or the best by "
        "quality.",
    )
    center: bool = option(
        Flag(),
        "Center the features",
        "subtract the corpus's mean from the features before they are scaled to unit length: for embeddings whose "
        "cosines are all high",
        "",
        WHAT,
        listed="Features centered",
        default=False,
        control=Control(),
        help="Subtract the corpus's mean from the features first. For embeddings whose cosines are all high, such as "
        "E5's: what all texts share is taken away, and diversity looks at what differs.",
    )
    prune: float = option(
        Number("a share from 0 to below 1", 0, 1, below=True),
        "Prune by quality first",
        "drop the worst by quality first",
        "SHARE",
        WHAT,
        listed="Pruned by quality first",
        default=0.0,
        varied="pruned",
        control=Control({"min_value": 0.0, "max_value": 0.99, "step": 0.1, "format": "%.3g"}),
        help="Drop this share of the rows, the worst by quality, before learning. Learning gets quicker.",
    )
    collapse: str = option(
        Copies(),
        "Copies",
        "keep the best of near-copies: none, exact or a cosine such as 0.95",
        "HOW",
        WHAT,
        listed="Copies collapsed",
        default="none",
        varied="copies",
        control=Control(),
        help="What to do with copies before selecting. Rows with identical features count as exact copies, whatever "
        "their text. Pair-wise similarity and DiSF cannot see copies themselves.",
    )
    pin: str | None = option(
        IdFile(),
        "Pinned ids",
        "a file of ids that must be selected: parquet, CSV, or text with one id per line",
        "IDS",
        WHAT,
    )
    ban: str | None = option(IdFile(), "Banned ids", "a file of ids that must not be", "IDS", WHAT)
    given: str | None = option(
        IdFile(),
        "Given ids",
        "a file of ids that you already have: the new rows are chosen beside them, and only the new ones are written",
        "IDS",
        WHAT,
    )
    quotas: tuple[Quota, ...] = option(
        Quotas(),
        "Quotas",
        "shares of the selection that a value of a column has at least and at most; may be given several times",
        "COLUMN=VALUE:LOW:HIGH",
        WHAT,
        default=(),
        flags=("--quota",),
    )
    neighbors: str = option(
        SEARCHES,
        "Nearest rows",
        "the neighbour graph: exact, approximate (its recall is measured), or auto, which is exact up to 200,000 rows "
        "and on a GPU",
        "HOW",
        FIND,
        listed="Neighbour graph",
        default="auto",
        control=Control(),
        help="Facility location, graph cut and near-copies look at each row's nearest rows. An approximate search "
        "misses about 1 in 100 of them and is quicker. How many it finds is measured and shown. Automatic is "
        "exact up to 200,000 rows, and on a GPU. A search that is kept and exact is always used again.",
    )
    exact_values: bool = option(
        Flag(),
        "Exact values",
        "on an approximate neighbour graph, compare all rows with all members at the end instead of estimating what "
        "the graph leaves out",
        "",
        FIND,
        default=False,
        control=Control(),
        help="On an approximate neighbour graph the diversity of facility location is a lower bound, shown beside an "
        "estimate of the exact value from 10,000 random rows. This compares all rows with all members instead, which "
        "for a million rows takes longer than the selection itself.",
    )
    scope: str | None = option(
        Choice({"global": "blocks of neighbours that see the others", "block": "random blocks, each alone"}),
        "Scope of a block",
        "of blocks: global (blocks of neighbouring cells, in rounds against what the others hold) or block (random "
        "blocks, each alone, equal shares: the paper's way). Of a corpus that does not fit into memory it asks for "
        "all rows, out of core; without it such a corpus is opened as a uniform sample",
        "SCOPE",
        FIND,
        listed="Scope",
        owners={"blocks": "global"},
        also=("relaxed",),
        varied="scope",
        control=Control(),
        help="How blocks hang together. Global: blocks of neighbouring samples, solved again in rounds, each against "
        "what the others hold; ends where greedy over all rows does. Random blocks, each alone, are the paper's way: "
        "the more of them there are, the less of the diversity they find.",
    )
    block_rows: int | None = option(
        Whole(2),
        "Rows of a block",
        "rows of a block, about; out of core it bounds the memory",
        "ROWS",
        FIND,
        owners={"blocks": 1_000_000},
        also=("relaxed",),
        varied="block rows",
        control=Control({"min_value": 2, "max_value": 100_000_000, "step": 10_000}),
        help="About so many rows are solved together.",
    )
    scratch_dir: str | None = option(
        Folder(),
        "Scratch folder",
        "all rows, out of core, whether they fit into memory or not: raw files of them are written below this folder, "
        "and removed when the run is done (with --scope: the system's folder of temporary files)",
        "FOLDER",
        FIND,
    )
    engine: str = option(
        Choice(
            {
                "local": "processes of this machine",
                "ray": "a Ray cluster",
                "files": "whoever takes calls out of a folder",
            }
        ),
        "Engine",
        "who does the blocks of a run over all rows out of core: local (processes of this machine), ray (needs the "
        "library ray), or files (`datamask task`, started by any scheduler); what is selected does not depend on it",
        "ENGINE",
        FIND,
        default="local",
    )
    workers: int | None = option(
        Whole(1),
        "Workers",
        "how many blocks are done at a time",
        "N",
        FIND,
        unset="as many as there are cores",
    )
    address: str | None = option(
        Text(),
        "Address of the engine",
        "of ray: the cluster to join, HOST:PORT or auto (without it one is started on this machine); of files: the "
        "folder for the calls, which all machines reach",
        "WHERE",
        FIND,
    )
    seed: int = option(
        Whole(0, 2**63 - 1, "2^63 - 1"),
        "Seed",
        "of masks, batches and ties",
        "N",
        FIND,
        default=0,
        varied="seed",
        help="Every random choice follows from it: the same seed on the same corpus gives the same selection.",
    )
    device: str = option(
        Device(),
        "Device",
        "auto, cpu, cuda or cuda:K",
        "DEVICE",
        FIND,
        default="auto",
        help="Where to compute. Auto takes a GPU where there is one. cuda:1 names the second GPU.",
    )


OPTIONS = options_of(SelectionOptions)
"""Every option by its name."""

LEARNER_OPTIONS = tuple(name for name, entry in OPTIONS.items() if entry.owners)
"""Options that only some estimators have."""
