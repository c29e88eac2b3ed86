"""Lists of ids, texts of addresses, and uploads."""

from __future__ import annotations

import csv
import io
import os
import random
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from datamask import CorpusConfig, open_corpus
from datamask.errors import DatamaskError
from tests.torture import materials
from tests.torture.contract import Finding
from tests.torture.judging import ACCEPTED, REFUSED, Family, attempted, command, trace

ODD_IDS = (
    "",
    " ",
    "\ufeffid1",
    "id1\x00",
    "ID1",
    "id1 ",
    "nan",
    "None",
    "=1+1",
    "x" * 100_000,
    '"',
    "'",
    "id\t1",
    "é",
    "9" * 400,
    "-1",
    "<b>",
    "\u202eid1",
)


# -- lists of ids ----------------------------------------------------------------------------------------------------


def _list_bytes(ids: list, suffix: str, rng: random.Random) -> bytes:
    if suffix == ".txt":
        return rng.choice(["\n", "\r\n"]).join(map(str, ids)).encode("utf-8", "surrogatepass")
    if suffix == ".csv":
        text = io.StringIO()
        writer = csv.writer(text, quoting=rng.choice([csv.QUOTE_MINIMAL, csv.QUOTE_ALL]))
        extra = rng.random() < 0.3
        writer.writerow(["chunk_id", "note"] if extra else ["chunk_id"])
        writer.writerows([[value, "x"] if extra else [value] for value in ids])
        return text.getvalue().encode("utf-8", "surrogatepass")
    sink = io.BytesIO()
    kind = rng.choice([pa.string(), pa.large_string(), pa.dictionary(pa.int32(), pa.string())])
    pq.write_table(pa.table({"chunk_id": pa.array(ids, pa.string()).cast(kind)}), sink)
    return sink.getvalue()


def run_list(number: int, folder: Path) -> str:
    """Score or import a list; a plain one is accepted and means the rows it names."""
    from datamask.evaluation.id_lists import read_rows

    rng = random.Random(f"list {number}")
    corpus = open_corpus(CorpusConfig((str(materials.corpus_file()),)))
    rows = sorted(rng.sample(range(len(corpus)), rng.randrange(1, len(corpus) - 1)))
    known = [corpus.ids[row].as_py() for row in rows]
    ids, plain = list(known), True
    rng.shuffle(ids)
    if rng.random() < 0.5:
        plain = False
        for _ in range(rng.randrange(1, 4)):
            ids.insert(rng.randrange(len(ids) + 1), rng.choice([*ODD_IDS, known[0]]))
    suffix = rng.choice([".txt", ".csv", ".parquet", ".TXT", ".json", ""])
    path = folder / f"list{suffix}"
    kind = suffix.lower() if suffix.lower() in (".txt", ".csv") else ".parquet"
    data = bytearray(_list_bytes(ids, kind, rng))
    if rng.random() < 0.4:
        plain = False
        for _ in range(rng.choice([1, 4, 30])):
            data[rng.randrange(len(data))] = rng.choice([rng.randrange(256), 0, 0xFF, 10, 34, 44])
        if rng.random() < 0.3:
            data = data[: rng.randrange(len(data))]
        if rng.random() < 0.1:
            data = bytearray(
                rng.choice(
                    [
                        b"",
                        b"\n",
                        b"\xff\xfe" + bytes(data),
                        b"\xef\xbb\xbf" + bytes(data),
                        b"\x00" * 100,
                        b"chunk_id\n",
                        b'"',
                        b"a,b\n1,2\n",
                    ]
                )
            )
    path.write_bytes(bytes(data))
    if number % 50 == 0:
        plain = False
        path.unlink()
        rng.choice(
            [
                path.mkdir,
                lambda: os.mkfifo(path),
                lambda: path.symlink_to(path),
                lambda: path.symlink_to("/dev/zero"),
                lambda: None,
            ]
        )()
    word, listed = attempted(lambda: read_rows(path, corpus), f"reading a list ({suffix or 'no suffix'})")
    if plain and (listed is None or listed.rows.tolist() != rows or listed.unknown):
        raise Finding(
            f"a plain list ({suffix or 'no suffix'}) of {len(ids)} ids was "
            + (word if listed is None else "read as other rows")
        )
    if number % 10 == 0:
        words = ["score", "--selection", path] if rng.random() < 0.5 else ["runs", "import", path]
        code, _ = command(
            *words,
            materials.corpus_file(),
            "--runs_dir",
            folder / "runs",
            "--device",
            "cpu",
            doing=f"{words[0]} of a list ({suffix})",
        )
        if (code == 0) != (listed is not None) and not (listed is not None and listed.unknown):
            raise Finding(f"the command line says {code} to a list that is {word}")
        if code and list((folder / "runs").glob("*/status.json")):
            raise Finding("a refused import left a run")
    return word


# -- addresses -------------------------------------------------------------------------------------------------------

TEXTS = (
    "",
    "x",
    "../../etc/passwd",
    "<script>alert(1)</script>",
    "%00",
    "\x00",
    "a" * 5000,
    "-1",
    "nan",
    "inf",
    "1e999",
    "9" * 21,
    "[]",
    "{}",
    "null",
    '[["quality",0,1]]',
    '[["quality",1e308,-1e308]]',
    '[["nope",0,1]]',
    '[["quality",NaN,1]]',
    '[["quality",0,1e999]]',
    '[["quality",' + "9" * 400 + ",1]]",
    '[["domain",["x"]]]',
    '[["\\u0000",0,1]]',
    '[["quality",true,false]]',
    "[" * 1700,
    '[["source",[' + '"a",' * 300 + '"b"]]]',
    "UMAP.lasso,0,0,1,1,000000999000999999",
    "UMAP.lasso,0,0,1e308,1e308,000000999000999999",
    "UMAP.box,nan,0,1,1,000000999000999999",
    "UMAP.lasso,-1e308,0,1e308,1,000000999000999999",
    "PCA.lasso,1,1,0,0,000000999000999999",
    "X.lasso,0,0,1,1,000000999000999999",
    "UMAP.;;;",
    "UMAP.",
    ".",
    "UMAP.lasso,0,0,1,1,٠٠٠٠٠٠٩٩٩٠٠٠٩٩٩٩٩٩",
    "٣٣٣",
    "\u202e",
    "\ud83d\ude00",
    ":red[x] $x$ `y`",
    "None",
    "True",
    "0",
    "1",
    "0.5",
    "a-b",
    "-",
    "--",
    "a,b,c,d,e",
    "a,a,a,a",
    "A",
    "é",
    "points",
    "UMAP",
    "facility",
    "٠.٥",
    "1_0",
    "0x1",
    "+0.5",
    " 0.5 ",
)


def _text(rng: random.Random) -> str:
    text = rng.choice(TEXTS)
    if rng.random() < 0.6:
        letters = list(text)
        for _ in range(rng.randrange(1, 4)):
            place = rng.randrange(len(letters) + 1)
            letters[place : place + rng.randrange(2)] = rng.choice(
                ["", "9", "e9", "-", ",", '"', "[", "]", ";", ".", "\x00", "\udcff", "é", "NaN", "1e400", "null", "٣"]
            )
        text = "".join(letters)
    return text


def run_address(number: int, folder: Path) -> str:
    """Every control of every page reads the text, or says ValueError, which takes it out of the address."""
    from datamask.dashboard.frame import address
    from datamask.runs.rule_book import RuleStore
    from datamask.runs.store import RunStore

    rng = random.Random(f"address {number}")
    text = _text(rng)
    taken = 0
    for page, parts in address.PARTS.items():
        for name, part in parts.items():
            try:
                value = part.join(None, part.read(text))
            except ValueError:
                continue
            except Exception as error:
                raise Finding(f"?{name}= of {page} with {text[:80]!r}: {trace(error)}") from error
            try:
                again = part.write(value)
            except Exception as error:
                raise Finding(
                    f"?{name}= of {page} accepts {text[:80]!r} and cannot write it: {trace(error)}"
                ) from error
            taken += 1
            if again and name not in ("lambda", "ratio"):
                try:
                    once_more = part.write(part.join(None, part.read(again)))
                except Exception as error:
                    raise Finding(
                        f"?{name}= of {page} cannot read what it wrote, {again[:80]!r}: {trace(error)}"
                    ) from error
                if once_more != again:
                    raise Finding(f"?{name}= of {page} wanders: {again[:80]!r} becomes {once_more[:80]!r}")
    attempted(lambda: RunStore(folder / "runs").get(text), f"?run={text[:60]!r}")
    try:
        RuleStore(folder / "runs").load(text)
    except Exception as error:
        raise Finding(f"?rules={text[:80]!r}: {trace(error)}") from error
    _path_field(text, folder, rng)
    return ACCEPTED if taken else REFUSED


def _path_field(text: str, folder: Path, rng: random.Random) -> None:
    """What is typed into the path field stays under the roots."""
    from datamask.dashboard.data.inputs import confined_config

    inside = folder / "inside"
    inside.mkdir()
    pq.write_table(materials.table(3), inside / "a.parquet")
    (inside / "out").symlink_to(materials.corpus_file().parent)
    typed = rng.choice(
        [
            text,
            f"{inside}/{text}",
            f"{inside}/../{text}",
            f"{inside}/out/*.parquet",
            f"{inside}/**/../..",
            f"{inside}/*/../../*",
            f"{inside}/[a]*",
            f"{inside}/{text}/*.parquet",
        ]
    )
    try:
        config = CorpusConfig((typed,))
    except DatamaskError:
        return
    _, config = attempted(lambda: confined_config(config, [inside]), f"the path {typed[:80]!r}")
    if config is not None:
        real = [Path(path).resolve() for path in config.inputs if "*" not in path]
        if any(inside.resolve() not in (path, *path.parents) for path in real):
            raise Finding(f"the path {typed[:80]!r} leads outside the folders that may be read")


# -- uploads ---------------------------------------------------------------------------------------------------------

NAMES = (
    "../../../etc/passwd.parquet",
    "/etc/x.parquet",
    "..",
    ".",
    "",
    "a/b\\c.parquet",
    "\x00.parquet",
    "x" * 5000 + ".parquet",
    "-rf.parquet",
    "<script>.parquet",
    "CON.parquet",
    ".hidden.parquet",
    "é.parquet",
    "\u202e.parquet",
    "a\nb.parquet",
    "%2e%2e%2f.parquet",
    "~root.parquet",
    "$(id).parquet",
    "*.parquet",
    "?.parquet",
    "[a].parquet",
    "x.parquet.exe",
    "\udcff.parquet",
    "a.parquet",
    "A.PARQUET",
)


def run_upload(number: int, folder: Path) -> str:
    """An upload is kept under the runs folder with the very bytes, also beside damaged ones of the same name."""
    from datamask.dashboard.data import inputs

    rng = random.Random(f"upload {number}")
    root = folder / "runs"
    name = rng.choice(NAMES)
    if rng.random() < 0.4:
        name = "".join(rng.choice(["a", "/", "..", "\\", "\x00", "é", ".", "-", " ", "%2f"]) for _ in range(6)) + name
    base = rng.choice(materials.bases()[2:])
    data = base if rng.random() < 0.5 else base[: rng.randrange(len(base))]
    word, path = attempted(lambda: inputs.keep_uploads([(name, io.BytesIO(data))], root)[0], f"keeping {name[:40]!r}")
    if path is None:
        return word
    if not Path(os.path.realpath(path)).is_relative_to(root.resolve() / inputs.UPLOADS):
        raise Finding(f"the upload {name[:60]!r} was kept at {path}")
    if path.read_bytes() != data:
        raise Finding("an upload was kept with other bytes")
    spoil = rng.randrange(5)
    if spoil == 0:
        path.write_bytes(data[: len(data) // 2])
    elif spoil == 1:
        path.write_bytes(rng.choice(materials.bases()[2:]))
    elif spoil == 2:
        path.unlink()
        path.symlink_to(materials.corpus_file())
    elif spoil == 3:
        path.unlink()
        os.mkfifo(path)
    word, again = attempted(lambda: inputs.keep_uploads([(name, io.BytesIO(data))], root)[0], "sending it again")
    if again is not None and (not again.is_file() or again.read_bytes() != data):
        raise Finding("what was kept under an upload's name was altered, and it is believed when it is sent again")
    if again is not None:
        attempted(lambda: open_corpus(CorpusConfig((str(again),))), "opening an upload")
        attempted(lambda: inputs.idle_uploads(root, []), "looking for idle uploads")
    return word


FAMILIES = (
    Family("id list", 1_500, run_list),
    Family("address", 2_500, run_address),
    Family("upload", 500, run_upload),
)
