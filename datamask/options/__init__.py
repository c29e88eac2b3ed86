"""Every setting of a selection, one entry each in `table`: its kind, default, who has it, and the words people read.

The dataclass's check, the command line, the Run form, the lists of settings and what a sweep may vary are loops over
`OPTIONS`. To add an option, write its entry in `table.SelectionOptions` and the code that uses it. Beside the table the
`kinds` of values, and three of them in detail: `amounts` of tokens, `quotas`, and the `checks` of one value. Nothing
here loads torch, or knows an objective or an estimator but by name.
"""

from datamask.options.kinds import Choice, Copies, Device, Flag, IdFile, Kind, Number, Quotas, Text, Tokens, Whole
from datamask.options.option import Control, Option
from datamask.options.quotas import Quota
from datamask.options.table import FIND, LEARNER_OPTIONS, OPTIONS, WHAT, SelectionOptions

__all__ = [
    "FIND",
    "LEARNER_OPTIONS",
    "OPTIONS",
    "WHAT",
    "Choice",
    "Control",
    "Copies",
    "Device",
    "Flag",
    "IdFile",
    "Kind",
    "Number",
    "Option",
    "Quota",
    "Quotas",
    "SelectionOptions",
    "Text",
    "Tokens",
    "Whole",
]
