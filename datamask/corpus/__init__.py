"""The corpus: parquet shards in, one contiguous feature array, ids, quality and metadata out.

`open_corpus` reads and checks; `inspect_inputs` looks at footers only; `Corpus` is what every other wing works on.
"""

from datamask.corpus.corpus import Corpus, Provenance
from datamask.corpus.inspection import Inspection, inspect_inputs
from datamask.corpus.opening import open_corpus
from datamask.corpus.sampling import default_row_limit, row_hash

__all__ = ["Corpus", "Inspection", "Provenance", "default_row_limit", "inspect_inputs", "open_corpus", "row_hash"]
