"""A sentence-transformers model of random weights."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

SPECIAL = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")


def random_bert(folder: Path, words: Sequence[str], *, hidden: int = 16, layers: int = 1, prompt: str = "") -> Path:
    """Save a BERT that knows these words, with mean pooling; give its folder.

    Args:
        hidden: dimensions; a head has 8 of a small model, at most 32. prompt: before documents.
    """
    import torch
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer.modules import Pooling, Transformer
    from transformers import BertConfig, BertModel, BertTokenizerFast

    plain = folder.with_name(f"{folder.name}-bert")
    plain.mkdir(parents=True)
    (plain / "vocab.txt").write_text("\n".join([*SPECIAL, *words]), encoding="utf-8")
    torch.manual_seed(0)
    size = {"hidden_size": hidden, "num_hidden_layers": layers, "intermediate_size": 4 * hidden}
    config = BertConfig(
        vocab_size=len(SPECIAL) + len(words), num_attention_heads=hidden // min(32, hidden // 2), **size
    )
    BertModel(config).save_pretrained(plain)
    BertTokenizerFast(str(plain / "vocab.txt")).save_pretrained(plain)
    prompts = {"document": prompt, "query": ""} if prompt else None
    model = SentenceTransformer(modules=[Transformer(str(plain)), Pooling(hidden)], prompts=prompts)
    model.save(str(folder))
    return folder
