"""Every setting of a corpus and of a selection, one entry each: its kind, default, who has it, the words people read.

The dataclass's check, the command line, the forms, the lists of settings and what a sweep may vary are loops over
`CORPUS_OPTIONS` (`corpus_table`) and `OPTIONS` (`table`). To add an option, write its entry in `CorpusOptions` or in
`SelectionOptions` and the code that uses it. `BLOCK_OPTIONS` (`blocks_table`) are of the command line alone. Beside the
tables the `kinds` of values, and some of them in detail: `amounts` of tokens, `quotas`, `quality_columns`, and the
`checks` of one value. Nothing here loads torch, or knows an objective or an estimator but by name.
"""

from datamask.options.blocks_table import BLOCK_OPTIONS, BLOCKS, BlockOptions
from datamask.options.corpus_table import CORPUS_OPTIONS, ROWS, CorpusOptions
from datamask.options.kinds import (
    Choice,
    Copies,
    Device,
    Flag,
    Folder,
    IdFile,
    InputPaths,
    Kind,
    Number,
    QualityColumns,
    Quotas,
    Text,
    Tokens,
    Whole,
)
from datamask.options.option import Control, Option, check_options, option_words, restored_options
from datamask.options.quality_columns import TRANSFORMS, QualityColumn
from datamask.options.quotas import Quota
from datamask.options.table import FIND, LEARNER_OPTIONS, OPTIONS, TOPICS, WHAT, SelectionOptions

__all__ = [
    "BLOCKS",
    "BLOCK_OPTIONS",
    "CORPUS_OPTIONS",
    "FIND",
    "LEARNER_OPTIONS",
    "OPTIONS",
    "ROWS",
    "TOPICS",
    "TRANSFORMS",
    "WHAT",
    "BlockOptions",
    "Choice",
    "Control",
    "Copies",
    "CorpusOptions",
    "Device",
    "Flag",
    "Folder",
    "IdFile",
    "InputPaths",
    "Kind",
    "Number",
    "Option",
    "QualityColumn",
    "QualityColumns",
    "Quota",
    "Quotas",
    "SelectionOptions",
    "Text",
    "Tokens",
    "Whole",
    "check_options",
    "option_words",
    "restored_options",
]
