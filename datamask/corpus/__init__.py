"""The corpus: parquet shards in, one contiguous feature array, ids, quality and metadata out.

`open_corpus` reads and checks; `inspect_inputs` looks at footers only; `Corpus` is what every other wing works on. By
job, in the order a feature row passes them:

| module | job |
|---|---|
| `columns` | which column plays which part: by name, by type, by choice |
| `column_kinds` | what every other column is: a number, a class, or neither |
| `shards`, `threads` | files, row groups, batches; parallel threads with stop and progress |
| `row_plan`, `sampling` | which rows: uniform samples by hash, joins with side shards, the row limit |
| `reading`, `decode` | Arrow buffers into preallocated arrays |
| `checks`, `quality`, `metadata` | valid rows, unit features, fingerprint; quality sums; all other columns |
| `text_file`, `beginnings` | the texts in a mapped file; some of them, or how they begin |
| `opening`, `inspection`, `corpus` | the whole of it; a look beforehand; what comes out |
| `in_memory` | `open_corpus`: paths, tables and arrays |
| `first_rows` | a first look: the first rows of some shards, in seconds, whatever the size |
| `centered`, `components` | the same rows with the mean of the features taken away; on their leading components |
| `shared_corpora` | the few corpora a process holds open |
| `neighbors` | the k-nearest-neighbour graph, one per corpus, cached, its recall measured |
| `rounded_rows` | rows as the graph sees them, whose cosines are whole numbers |
| `exact_search`, `centres`, `partition_search`, `pair_search`, `kernels` | all pairs; cells; their pairs; lists |
| `neighbor_descent` | lists made better by the neighbors of neighbors |
| `list_length` | how many neighbors facility location lists |
| `graph_checkpoint` | half-built lists, gone on with after a stop |
| `copies`, `density` | families of near-copies and their rate, in subsamples too; local density |
| `projections`, `principal` | two dimensions to look at: PCA at once, UMAP and t-SNE when ready |
| `preparation` and what stands beside it | text in, scored and embedded shards out |
| `embedders`, `kept_embeddings` | what makes features of texts; its rows kept, so that preparing goes on after a kill |

Importing this package, or any of these modules but `kernels` and `preparation`, loads no torch, scikit-learn or numba.
"""

from datamask.corpus.corpus import Corpus, Provenance
from datamask.corpus.first_rows import FirstLook, first_look
from datamask.corpus.in_memory import open_corpus
from datamask.corpus.inspection import Inspection, inspect_inputs
from datamask.corpus.sampling import default_row_limit, row_hash

__all__ = [
    "Corpus",
    "FirstLook",
    "Inspection",
    "Provenance",
    "default_row_limit",
    "first_look",
    "inspect_inputs",
    "open_corpus",
    "row_hash",
]
