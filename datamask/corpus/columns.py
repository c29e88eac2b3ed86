"""Which column plays which part: the paper's names first, then other known names, then the only column of the type.

The paper calls its columns ``chunk_id``, ``quality_score`` and ``feature_arr``; FineWeb-Edu calls its ``id``, ``score``
and ``token_count``; DCLM keeps ids in ``metadata``. Upper and lower case make no difference. Known names are looked for
among the columns, then in the structs `CONTAINERS`. A column found by its type alone is taken only where there is
exactly one of that type, and none of its words says that it is something else (`NO_SCORE`, `FALLING`); otherwise the
error lists the candidates and the option that chooses between them. What `prepare` found or made stands in its shards.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.types as pt

from datamask.config import CorpusConfig, QualityColumn
from datamask.corpus.corpus import ColumnNames
from datamask.corpus.readers.kinds import (
    is_feature,
    is_id,
    is_list,
    is_number,
    is_packed,
    is_string,
    value_type,
)
from datamask.corpus.readers.leaves import is_leaf, part_of
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
    "int_score",
    "edu_score",
    "edu_int_score",
    "dclm_score",
    "fasttext_score",
    "quality_scores",
    "fasttext_openhermes_reddit_eli5_vs_rw_v2_bigram_200k_train_prob",
    "fineweb-nemotron-edu-score-float",
    "fineweb-mixtral-edu-score-float",
    "fineweb-edu-score-float",
    "fineweb-nemotron-edu-score",
    "fineweb-mixtral-edu-score",
    "fineweb-edu-score",
    "rps_doc_ml_wikiref_score",
    "rps_doc_ml_wikipedia_score",
    "rps_doc_ml_palm_score",
)
SCORES = frozenset(("quality", "score", "scores", "rating", "edu", "reward"))
"""Words in the names of scores."""

FALLING = frozenset(
    (
        *("perplexity", "ppl", "toxicity", "toxic", "nsfw", "spam", "loss", "nll", "bpb", "error", "err", "dist"),
        *("distance", "duplicate", "duplicates", "dup", "dedup", "repetition", "noise", "risk", "bias", "penalty"),
    )
)
"""Words of columns where less is better: never taken for a score unless a person says so."""

NO_SCORE = FALLING.union(
    ("index", "idx", "unnamed", "row", "rows", "line", "offset", "position", "pos", "rank", "order", "seed", "batch"),
    ("year", "yr", "month", "day", "week", "hour", "date", "time", "timestamp", "ts", "epoch", "age", "created"),
    ("label", "labels", "class", "category", "cluster", "minhash", "bucket", "group", "split", "fold", "shard"),
    ("count", "counts", "num", "number", "n", "length", "len", "size", "tokens", "words", "chars", "characters"),
    ("topic", "lines", "bytes", "id", "ids", "hash", "code", "status", "version", "part", "partition"),
)
"""Words of columns that hold row numbers, times, classes or counts besides: never taken for a score."""

NO_ID = (NO_SCORE - {"id", "ids", "number", "hash", "code"}) | {"language", "lang", "source", "domain", "dump", "type"}
"""Words of columns that hold one value in many rows: never taken for ids by their type alone."""

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

COLUMNS_KEY = b"datamask.columns"
"""In the metadata of a prepared shard, as JSON: role -> name of the column that was found or made for it."""

CONTAINERS = ("metadata", "meta")
"""Structs in which web corpora keep what is known of a document."""

OPTIONS = {
    "id": "--id_column",
    "quality": "--quality_column",
    "feature": "--feature_column",
    "length": "--length_column",
    "text": "--text_column",
}
WANTS = {
    "id": "a column of integers, texts, UUIDs, bytes or whole decimals without repeats",
    "quality": "a number column",
    "feature": "a column of lists of numbers, all of one length",
    "length": "a number column",
    "text": "a column of texts",
}


@dataclass(frozen=True)
class Columns:
    """The columns of one corpus by the part they play.

    Attributes:
        id, feature, length, text: column names; length and text may be None.
        quality: the quality columns with weights and transforms.
        feature_from, quality_from: the source of each: ``input``, ``features`` or ``scores`` (one per quality column).
        notes: sentences about columns that were guessed.
        made_ids: there is no id column; ids are made of file and row, and `id` is what they are called.
        bits: features are packed bits.
        beside: names of further columns that are read; None: all.
    """

    id: str
    feature: str
    quality: tuple[QualityColumn, ...]
    length: str | None = None
    text: str | None = None
    feature_from: str = "input"
    quality_from: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    made_ids: bool = False
    bits: bool = False
    beside: frozenset[str] | None = None

    def reads(self, name: str) -> bool:
        """Whether a column without another role is read."""
        return self.beside is None or name in self.beside or name in (column.name for column in self.quality)

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


def _is_floats(kind: pa.DataType) -> bool:
    """Lists of floats: the type tells that these are features; others are by their name alone."""
    return is_list(kind) and pt.is_floating(value_type(kind).value_type)


IS_ROLE = {"id": is_id, "quality": is_number, "feature": is_feature, "length": is_number, "text": is_string}
"""What a column of each role can be."""

BY_TYPE = {**IS_ROLE, "id": lambda kind: is_string(kind) or pt.is_integer(value_type(kind)), "feature": _is_floats}
"""What a column must be where nothing but its type tells."""


def _known(names: tuple[str, ...]) -> tuple[str, ...]:
    return (*names, *(f"{above}.{name}" for name in names for above in CONTAINERS))


NAMES = {
    "id": _known(ID_NAMES),
    "quality": _known(QUALITY_NAMES),
    "feature": FEATURE_NAMES,
    "length": _known(LENGTH_NAMES),
    "text": TEXT_NAMES,
}
_PLACES = {role: {name.lower(): place for place, name in enumerate(names)} for role, names in NAMES.items()}


def _words(name: str) -> set[str]:
    """The words of a name: ``__index_level_0__``, ``crawlDate`` and ``WARC-Date`` are several."""
    spaced = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", " ", name)
    return {word.lower() for word in re.split(r"[^A-Za-z]+", spaced) if word}


def _is_score(name: str) -> bool:
    """Whether a name says that it is a score, and not that of a language."""
    return bool(_words(name) & SCORES) and "language" not in _words(name)


def candidates(schema: pa.Schema, role: str) -> list[str]:
    """The columns whose type fits `role` (a key of `IS_ROLE`) and whose name no other has, known names first."""
    repeated, places = set(_repeated(schema, role)), _PLACES[role]

    def fits(name: str, kind: pa.DataType) -> bool:
        if BY_TYPE[role](kind):
            return True
        # a text called "features" describes a product rather than lists numbers
        unlike = role == "feature" and is_string(kind) and not name.startswith(("emb", "vec"))
        return name in places and IS_ROLE[role](kind) and not unlike

    fitting = [f.name for f in schema if f.name not in repeated and fits(f.name.lower(), f.type)]
    return sorted(fitting, key=lambda name: places.get(name.lower(), len(places)))


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
    fitting = [name for name in candidates(schema, role) if part_of(schema.field(name)) is None]
    fitting = [name for name in fitting if not is_leaf(schema.field(name))] or fitting
    others = {"id": ("quality", "length", "text"), "quality": ("id", "length")}.get(role, ())
    fitting = [name for name in fitting if not any(name.lower() in _PLACES[other] for other in others)]
    if role == "id":
        return [name for name in fitting if not _words(name) & NO_ID]
    if role == "quality":
        fitting = [name for name in fitting if not _words(name) & NO_SCORE]
        return [name for name in fitting if _is_score(name)] or fitting
    return fitting


def guess(schema: pa.Schema, role: str) -> tuple[str | None, str]:
    """The column for `role` and how it was found: ``name``, ``type``, or ``none``, ``several`` and ``repeated`` (a
    name that several columns share) without one.

    A known name whose type does not fit is passed over, so that a text column called "id" never hides a real one.
    """
    fitting, places = candidates(schema, role), _PLACES[role]
    known = [name for name in fitting if name.lower() in places]
    repeated = [name for name in _repeated(schema, role) if name.lower() in places]
    if repeated and (not known or places[repeated[0].lower()] < places[known[0].lower()]):
        return None, "repeated"
    if known:
        # of two embeddings neither is the better one
        return (None, "several") if role == "feature" and len(known) > 1 else (known[0], "name")
    if role in ("length", "text"):
        return None, "none"  # these may be missing, so a type alone is not enough
    fitting = plausible(schema, role)
    if len(fitting) == 1:
        return fitting[0], "name" if role == "quality" and _is_score(fitting[0]) else "type"
    return None, "several" if fitting else "repeated" if _repeated(schema, role) else "none"


def _find(schema: pa.Schema, chosen: str | None, role: str, path: str) -> tuple[str | None, str | None]:
    """The column for `role`, asked for, noted by `prepare`, or guessed, and the note to make about it.

    Returns:
        None where there is none for ids: they can be made.

    Raises:
        InputError: the chosen column does not fit, or none or several could be meant.
    """
    if chosen is not None:
        return require(schema, chosen, role, path), None
    if (noted := noted_column(schema, role)) is not None:
        return noted, None
    name, how = guess(schema, role)
    option, wrong = OPTIONS[role], wrong_type(schema, role)
    if wrong is not None and (name is None or name.lower() not in _PLACES[role]) and how not in ("several", "repeated"):
        raise InputError(f"{path}: {wrong}, or choose another with {option}")
    if name is not None:
        usual = NAMES[role][0]
        return name, None if name == usual else f"Column {name!r} was taken as the {role} column, by its {how}."
    if how == "repeated":
        repeated = sorted(_repeated(schema, role), key=lambda name: _PLACES[role].get(name.lower(), 1000))[0]
        raise InputError(
            f"{path} has {schema.names.count(repeated)} columns called {repeated!r}, one of which could be the "
            f"{role}; rename all but one, or choose another with {option}"
        )
    falling = [field.name for field in schema if is_number(field.type) and _words(field.name) & FALLING]
    less = f"{option} {falling[0]}:-1 where less is better" if role == "quality" and falling else ""
    if how == "several":
        several = plausible(schema, role)
        raise InputError(
            f"{path} has several columns that could be the {role} ({_listed(several)}); choose one with {option} "
            f"{several[0]}{less and f', or {less}'}"
        )
    if role == "id":
        return None, None
    others = [name for name in candidates(schema, role) if not {"index", "unnamed"} & _words(name)]
    if role == "quality" and others:
        rising = [f"{option} {name}" for name in others if name not in falling][:1]
        raise InputError(
            f"{path} has no column that is clearly the quality; its columns of numbers are {_listed(others)}; choose "
            f"one with {', or '.join([*rising, *([less] if less else [])])}"
        )
    prepare = f"`python -m datamask prepare {path} --output prepared`"
    what = {"feature": "features", "quality": "scores"}[role]
    raise InputError(
        f"{path} has no {role} column ({WANTS[role]}); its columns are {_listed(schema.names)}; make {what} with "
        f"{prepare}, or name their shards with --{what}"
    )


def _packed(schema: pa.Schema, chosen: str | None, path: str) -> str:
    """The column with packed bits, asked for or of a known name.

    Raises:
        InputError: there is none, or there are several.
    """
    fitting: list[str] = [field.name for field in schema if is_packed(field.type)]
    named = [name for name in fitting if name == chosen or (chosen is None and name.lower() in _PLACES["feature"])]
    if len(named) != 1:
        raise InputError(
            f"{path} needs one column of packed bits (bytes, or lists of 8-bit integers) for --feature_bits, named by "
            f"--feature_column; such columns are {_listed(fitting)}"
        )
    return named[0]


def wrong_type(schema: pa.Schema, role: str) -> str | None:
    """Return what is wrong with a column that has a name of `role` and a type that does not fit; None: there is none.

    Args:
        role: ``id``, ``quality`` or ``feature``.
    """
    casts = {
        "id": "cast it to integers or text, or make ids with --make_ids",
        "quality": "cast it to numbers, such as CAST(x AS DOUBLE) in DuckDB",
        "feature": "write it as a list of numbers, or read packed bits with --feature_bits",
    }
    for field in schema:
        if role == "feature" and not field.name.lower().startswith(("emb", "vec", "feature_arr")):
            continue  # "features" of a product are no numbers, and "dense" may be a flag
        top, _, leaf = field.name.partition(".")
        if field.name.lower() in _PLACES[role] and not IS_ROLE[role](field.type):
            return f"column {field.name!r} is {field.type}, and the {role} must be {WANTS[role]}; {casts[role]}"
        if leaf and is_leaf(field) and top.lower() in _PLACES[role] and top not in CONTAINERS:
            return (
                f"column {top!r} is a struct, and the {role} must be {WANTS[role]}; name a field such as {field.name}"
            )
    return None


def noted_column(schema: pa.Schema, role: str) -> str | None:
    """Return the column that `prepare` noted for a role; None where there is no such note or column."""
    try:
        name = json.loads((schema.metadata or {}).get(COLUMNS_KEY, b"{}")).get(role)
    except (ValueError, AttributeError):  # of another program
        return None
    fits = name is not None and schema.names.count(name) == 1 and IS_ROLE[role](schema.field(name).type)
    return name if fits else None


def columns_metadata(columns: Mapping[str, str | None]) -> dict[bytes, bytes]:
    """Return what shards keep of their columns, by role."""
    return {COLUMNS_KEY: json.dumps({role: name for role, name in columns.items() if name}).encode()}


def free_name(name: str, schema: pa.Schema) -> str:
    """Return a name that no column has yet."""
    taken = {other.lower() for other in schema.names}
    return name if name not in taken else f"datamask_{name}"


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
    id_name, note = (None, None) if config.make_ids else _find(main, config.id_column, "id", paths["input"])
    notes.append(note)
    made_ids = id_name is None
    if id_name is None:
        id_name = free_name(ID_NAMES[0], main)
        why = "as --make_ids asks" if config.make_ids else "since no column looks like ids; --id_column names one"
        notes.append(f"Ids are made of file and row, {why}.")
    feature_from = "features" if "features" in schemas else "input"
    feature: str | None
    if config.feature_bits:
        feature, note = _packed(schemas[feature_from], config.feature_column, paths[feature_from]), None
    else:
        feature, note = _find(schemas[feature_from], config.feature_column, "feature", paths[feature_from])
    assert feature is not None
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
        assert quality_name is not None
        quality.append(QualityColumn(quality_name))
        origin.append(side)
        notes.append(note)
    if config.length_column is not None:
        length: str | None = require(main, config.length_column, "length", paths["input"])
    else:
        length = noted_column(main, "length") or guess(main, "length")[0]
    text = noted_column(main, "text") or guess(main, "text")[0]
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
        made_ids,
        config.feature_bits,
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
