"""Which column plays which part: the paper's names first, then other known names, then the only column of the type.

The paper calls its columns ``chunk_id``, ``quality_score`` and ``feature_arr``; FineWeb-Edu calls its ``id``, ``score``
and ``token_count``; DCLM keeps ids in ``metadata``. Known names are looked for among the columns, then in the structs
`CONTAINERS`. A column found by its type alone is taken only where there is exactly one of that type; otherwise the
error lists the candidates and the option that chooses between them.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.types as pt

from datamask.config import CorpusConfig, QualityColumn
from datamask.corpus.corpus import ColumnNames
from datamask.corpus.readers.leaves import is_leaf
from datamask.errors import InputError

ID_NAMES = (
    "chunk_id",
    "id",
    "doc_id",
    "document_id",
    "docid",
    "sample_id",
    "example_id",
    "text_id",
    "record_id",
    "uuid",
    "uid",
    "guid",
    "hash",
    "sha256",
    "sha1",
    "md5",
    "key",
    "WARC-Record-ID",
)
QUALITY_NAMES = (
    "quality_score",
    "quality",
    "score",
    "edu_score",
    "dclm_score",
    "fasttext_score",
    "quality_scores",
    "fasttext_openhermes_reddit_eli5_vs_rw_v2_bigram_200k_train_prob",
)
FEATURE_NAMES = (
    "feature_arr",
    "features",
    "feature",
    "embedding",
    "embeddings",
    "emb",
    "embeds",
    "vector",
    "vectors",
    "dense",
    "sentence_embedding",
)
LENGTH_NAMES = ("token_count", "n_tokens", "num_tokens", "tokens", "length", "token_length", "token_counts")
TEXT_NAMES = ("text", "content", "raw_content", "document", "body", "sentence", "passage", "chunk", "description")

TEXT_KEY = b"datamask.text"
"""In the metadata of a prepared shard: its text column, whatever its name."""

CONTAINERS = ("metadata", "meta")
"""Structs in which web corpora keep what is known of a document."""

OPTIONS = {
    "id": "--id_column",
    "quality": "--quality_column",
    "feature": "--feature_column",
    "length": "--length_column",
}
WANTS = {
    "id": "an integer or string column without repeats",
    "quality": "a number column",
    "feature": "a list, large_list or fixed_size_list column of float16, float32 or float64",
    "length": "a number column",
}


@dataclass(frozen=True)
class Columns:
    """The columns of one corpus by the part they play.

    Attributes:
        id, feature, length, text: column names; length and text may be None.
        quality: the quality columns with weights and transforms.
        feature_from, quality_from: the source of each: ``input``, ``features`` or ``scores`` (one per quality column).
        notes: sentences about columns that were guessed.
    """

    id: str
    feature: str
    quality: tuple[QualityColumn, ...]
    length: str | None = None
    text: str | None = None
    feature_from: str = "input"
    quality_from: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    def as_dict(self) -> ColumnNames:
        """Role -> column name, as kept in `Provenance.columns`; ``falling``: quality columns where less is better."""
        names: ColumnNames = {
            "id": self.id,
            "feature": self.feature,
            "quality": [column.name for column in self.quality],
            "length": self.length,
            "text": self.text,
        }
        if falling := [column.name for column in self.quality if column.weight < 0]:
            names["falling"] = falling
        return names


def value_type(kind: pa.DataType) -> pa.DataType:
    """The type behind a dictionary encoding or an extension type."""
    while True:
        if pt.is_dictionary(kind):
            kind = kind.value_type
        elif isinstance(kind, pa.BaseExtensionType):
            kind = kind.storage_type
        else:
            return kind


def is_string(kind: pa.DataType) -> bool:
    kind = value_type(kind)
    return bool(pt.is_string(kind) or pt.is_large_string(kind) or pt.is_string_view(kind))


def is_id(kind: pa.DataType) -> bool:
    return is_string(kind) or pt.is_integer(value_type(kind))


def is_number(kind: pa.DataType) -> bool:
    kind = value_type(kind)
    return bool(pt.is_integer(kind) or pt.is_floating(kind) or pt.is_decimal(kind))


def is_list(kind: pa.DataType) -> bool:
    kind = value_type(kind)
    return bool(pt.is_list(kind) or pt.is_large_list(kind) or pt.is_fixed_size_list(kind))


def is_feature(kind: pa.DataType) -> bool:
    return is_list(kind) and pt.is_floating(value_type(kind).value_type)


IS_ROLE = {"id": is_id, "quality": is_number, "feature": is_feature, "length": is_number, "text": is_string}


def _known(names: tuple[str, ...]) -> tuple[str, ...]:
    return (*names, *(f"{above}.{name}" for name in names for above in CONTAINERS))


NAMES = {
    "id": _known(ID_NAMES),
    "quality": _known(QUALITY_NAMES),
    "feature": FEATURE_NAMES,
    "length": _known(LENGTH_NAMES),
    "text": TEXT_NAMES,
}


def candidates(schema: pa.Schema, role: str) -> list[str]:
    """The columns whose type fits `role` (a key of `IS_ROLE`) and whose name no other has, known names first."""
    repeated = set(_repeated(schema, role))
    fitting = [f.name for f in schema if IS_ROLE[role](f.type) and f.name not in repeated]
    by_name = [name for name in NAMES[role] if name in fitting]
    return by_name + [name for name in fitting if name not in by_name]


def _repeated(schema: pa.Schema, role: str) -> list[str]:
    """Names that several columns share, one of which at least fits `role`; in the schema's order."""
    counts = Counter(schema.names)
    return list(dict.fromkeys(f.name for f in schema if counts[f.name] > 1 and IS_ROLE[role](f.type)))


def _listed(names: list[str]) -> str:
    return ", ".join(names[:12]) + (f" and {len(names) - 12} more" if len(names) > 12 else "") if names else "none"


def require(schema: pa.Schema, name: str, role: str, path: str) -> str:
    """`name`, if `schema` has exactly one such column and its type fits `role`.

    Raises:
        InputError: missing, there twice, or of a type that does not fit.
    """
    count = len(schema.get_all_field_indices(name))
    if count == 0:
        leaf = next((other for other in schema.names if other.endswith(f".{name}")), None)
        raise InputError(
            f"{path} has no column {name!r} for the {role}; its columns are {_listed(schema.names)}; choose one "
            f"with {OPTIONS[role]}" + ("" if leaf is None else f", such as {leaf}")
        )
    if count > 1:
        raise InputError(f"{path} has {count} columns called {name!r}; rename all but one")
    kind = schema.field(name).type
    if not IS_ROLE[role](kind):
        raise InputError(
            f"column {name!r} of {path} is {kind}, but {role} must be {WANTS[role]}; "
            f"choose another with {OPTIONS[role]}"
        )
    return name


def plausible(schema: pa.Schema, role: str) -> list[str]:
    """The candidates that no other role has a better claim to. Leaves of structs only where no column fits."""
    fitting = candidates(schema, role)
    fitting = [name for name in fitting if not is_leaf(schema.field(name))] or fitting
    if role == "id":
        of_other_roles = {*NAMES["quality"], *NAMES["length"], *TEXT_NAMES}
        return [name for name in fitting if name not in of_other_roles]
    if role == "quality":
        of_other_roles = {*NAMES["id"], *NAMES["length"]}
        fitting = [name for name in fitting if name not in of_other_roles]
        # a float is rather a score than an integer is: integers are counts, years, labels
        return [name for name in fitting if not pt.is_integer(value_type(schema.field(name).type))] or fitting
    return fitting


def guess(schema: pa.Schema, role: str) -> tuple[str | None, str]:
    """The column for `role` and how it was found: ``name``, ``type``, or ``none``, ``several`` and ``repeated`` (a
    name that several columns share) without one.

    A known name whose type does not fit is passed over, so that a text column called "id" never hides a real one.
    """
    fitting = candidates(schema, role)
    repeated = _repeated(schema, role)
    for name in NAMES[role]:
        if name in fitting:
            return name, "name"
        if name in repeated:
            return None, "repeated"
    if role in ("length", "text"):
        return None, "none"  # these may be missing, so a type alone is not enough
    fitting = plausible(schema, role)
    if len(fitting) == 1:
        return fitting[0], "type"
    return None, "several" if fitting else "repeated" if repeated else "none"


def _find(schema: pa.Schema, chosen: str | None, role: str, path: str) -> tuple[str, str | None]:
    """The column for `role`, asked for or guessed, and the note to make about it.

    Raises:
        InputError: the chosen column does not fit, or none or several could be meant.
    """
    if chosen is not None:
        return require(schema, chosen, role, path), None
    name, how = guess(schema, role)
    if name is not None:
        usual = NAMES[role][0]
        return name, None if name == usual else f"Column {name!r} was taken as the {role} column, by its {how}."
    if how == "repeated":
        repeated = _repeated(schema, role)
        name = next((name for name in NAMES[role] if name in repeated), repeated[0])
        raise InputError(
            f"{path} has {schema.names.count(name)} columns called {name!r}, one of which could be the "
            f"{role}; rename all but one, or choose another with {OPTIONS[role]}"
        )
    if how == "several":
        raise InputError(
            f"{path} has several columns that could be the {role} ({_listed(plausible(schema, role))}); "
            f"choose one with {OPTIONS[role]}"
        )
    prepare = f"python -m datamask prepare {path} --output prepared"
    way_out = {
        "feature": f"; make features with `{prepare}`, or name their shards with --features",
        "quality": f"; make scores with `{prepare}`, or name their shards with --scores",
        "id": "",
    }[role]
    raise InputError(f"{path} has no {role} column ({WANTS[role]}); its columns are {_listed(schema.names)}{way_out}")


def _noted_text(schema: pa.Schema) -> str | None:
    """The text column that `prepare` noted in a shard; None where there is no such note or column."""
    name = (schema.metadata or {}).get(TEXT_KEY, b"").decode("utf-8", "replace")
    return name if schema.names.count(name) == 1 and is_string(schema.field(name).type) else None


def resolve(config: CorpusConfig, schemas: dict[str, pa.Schema], paths: dict[str, str]) -> Columns:
    """Settle every role.

    Args:
        config: what was asked for.
        schemas: the schema of the first non-empty shard of ``input`` and, where given, ``features`` and ``scores``.
        paths: the path of that shard, for messages.

    Raises:
        InputError: a column is missing, of the wrong type, or not clear.
    """
    main = schemas["input"]
    notes = []
    id_name, note = _find(main, config.id_column, "id", paths["input"])
    notes.append(note)
    feature_from = "features" if "features" in schemas else "input"
    feature, note = _find(schemas[feature_from], config.feature_column, "feature", paths[feature_from])
    notes.append(note)
    quality, origin = [], []
    side = "scores" if "scores" in schemas else "input"
    if config.quality_columns:
        for column in config.quality_columns:
            source = side if column.name in schemas[side].names else "input"
            require(schemas[source], column.name, "quality", paths[source])
            quality.append(column)
            origin.append(source)
        names = [column.name for column in quality]
        if len(set(names)) < len(names):
            raise InputError(
                f"--quality_column names a column twice ({', '.join(names)}); give each once, with its weight"
            )
    else:
        quality_name, note = _find(schemas[side], None, "quality", paths[side])
        quality.append(QualityColumn(quality_name))
        origin.append(side)
        notes.append(note)
    if config.length_column is not None:
        length: str | None = require(main, config.length_column, "length", paths["input"])
    else:
        length = guess(main, "length")[0]
    text = _noted_text(main) or guess(main, "text")[0]
    text = text if text != id_name else None
    return Columns(
        id_name,
        feature,
        tuple(quality),
        length,
        text,
        feature_from,
        tuple(origin),
        tuple(note for note in notes if note),
    )


def side_id(schema: pa.Schema, id_name: str, id_kind: pa.DataType) -> str | None:
    """The column of a side shard that holds ids: the corpus's own id name, else a known one of its kind, else None."""
    for name in (id_name, *ID_NAMES):
        if (
            len(schema.get_all_field_indices(name)) == 1
            and is_id(schema.field(name).type)
            and (name == id_name or is_string(schema.field(name).type) == is_string(id_kind))
        ):
            return name
    return None
