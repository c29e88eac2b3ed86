"""Corpora that everybody starts from open as they are shipped: columns of made rows as in FineWeb, DCLM and so on."""

import pyarrow.parquet as pq
import pytest

from datamask import CorpusConfig, open_corpus
from datamask.cli import main
from datamask.errors import InputError
from tests.making.layouts import LAYOUTS, dolma, write

N = 40


@pytest.mark.parametrize("layout", LAYOUTS)
def test_from_the_files_as_shipped_to_ids(tmp_path, layout, capsys):
    make, ending, id_column, quality, length = LAYOUTS[layout]
    made = [make(i) for i in range(N)]
    path = write(tmp_path / f"shard{ending}", made)
    with pytest.raises(InputError, match="datamask prepare"):
        open_corpus(CorpusConfig((str(path),)))
    assert main(["prepare", str(path), "--output", str(tmp_path / "ready"), "--dim", "4"]) == 0
    corpus = open_corpus(CorpusConfig((str(tmp_path / "ready"),)))
    top, _, below = id_column.partition(".")
    assert corpus.ids.to_pylist() == [row[top][below] if below else row[top] for row in made]
    columns = corpus.provenance.columns
    assert (columns["quality"], columns["length"]) == ([quality], length)
    if quality in made[0]:
        assert corpus.quality.tolist() == [row[quality] for row in made], "the corpus's own score, not ours"
    out = tmp_path / "out.parquet"
    asked = ["select", str(tmp_path / "ready"), "--output", str(out), "--runs-dir", str(tmp_path / "runs")]
    assert main([*asked, "--objective", "pairwise", "--select_ratio", "0.25"]) == 0
    kept = pq.read_table(out)[0].to_pylist()
    assert len(kept) == N // 4 and set(kept) <= set(corpus.ids.to_pylist())
    capsys.readouterr()


def test_prepare_refuses_ids_that_repeat_and_makes_them_if_asked(tmp_path, capsys):
    made = [dolma(i) | {"id": "same"} for i in range(N)]
    path = write(tmp_path / "shard.jsonl", made)
    asked = ["prepare", str(path), "--output", str(tmp_path / "ready"), "--dim", "4"]
    assert main(asked) == 2
    assert "'same' is in" in (error := capsys.readouterr().err) and "row 0 and" in error and "--make_ids" in error
    assert main([*asked, "--make_ids"]) == 0
    assert open_corpus(CorpusConfig((str(tmp_path / "ready"),))).ids[3].as_py() == "shard:3"
    assert "Ids are made of file and row" in capsys.readouterr().err
