"""A static embedding model of a few words, in a folder as models are published."""

import json

from safetensors.numpy import save_file
from tokenizers import Tokenizer
from tokenizers.models import WordLevel
from tokenizers.pre_tokenizers import Whitespace

WORDS = ["[UNK]", "river", "stone", "cloud", "engine", "market", "violin"]


def write_model(folder, vectors, *, words=WORDS, normalize=True, **tensors):
    """Write a model2vec folder with a vector for each of `words`; tensors: ``weights`` and ``mapping``."""
    folder.mkdir()
    tokenizer = Tokenizer(WordLevel({word: place for place, word in enumerate(words)}, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = Whitespace()
    tokenizer.save(str(folder / "tokenizer.json"))
    save_file({"embeddings": vectors, **tensors}, folder / "model.safetensors")
    (folder / "config.json").write_text(json.dumps({"model_type": "model2vec", "normalize": normalize}))
    return folder
