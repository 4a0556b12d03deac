"""Tiny models with random weights and real tokenizers, for tests and benchmarks."""

from __future__ import annotations

import io
import json

import torch

SIZES = {
    "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 64,
    "vocab_size": 60, "max_position_embeddings": 64,
}  # fmt: skip
HALVES = {
    "d_model": 32, "encoder_layers": 2, "decoder_layers": 2, "encoder_attention_heads": 4,
    "decoder_attention_heads": 4, "encoder_ffn_dim": 64, "decoder_ffn_dim": 64, "vocab_size": 60,
    "max_position_embeddings": 64, "pad_token_id": 0, "decoder_start_token_id": 0,
    "eos_token_id": 1, "bos_token_id": 2,
}  # fmt: skip
KINDS = {
    "bert": ("Bert", SIZES),
    "gpt2": ("GPT2", {"n_embd": 32, "n_layer": 2, "n_head": 4, "vocab_size": 60, "n_positions": 64,
                      "bos_token_id": 1, "eos_token_id": 1}),
    "llama": ("Llama", SIZES | {"num_key_value_heads": 2}),
    "mistral": ("Mistral", SIZES | {"num_key_value_heads": 2, "sliding_window": 3}),
    "gemma2": ("Gemma2", SIZES | {"num_key_value_heads": 2, "head_dim": 8, "sliding_window": 3,
                                  "attn_logit_softcapping": 2.0}),
    "qwen3": ("Qwen3", SIZES | {"num_key_value_heads": 2, "head_dim": 8}),
    "gpt_neox": ("GPTNeoX", SIZES | {"bos_token_id": 1, "eos_token_id": 1}),
    "glm": ("Glm", SIZES | {"num_key_value_heads": 2, "head_dim": 8, "pad_token_id": 0,
                            "eos_token_id": 1}),
    "olmo2": ("Olmo2", SIZES | {"pad_token_id": 0, "eos_token_id": 1}),
    "t5": ("T5", {"d_model": 32, "d_kv": 8, "d_ff": 64, "num_layers": 2, "num_heads": 4,
                  "vocab_size": 60}),
    "marian": ("Marian", HALVES),
    "vit": ("ViT", {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4,
                    "intermediate_size": 64, "image_size": 16, "patch_size": 4}),
    "bloom": ("Bloom", {"hidden_size": 32, "n_layer": 2, "n_head": 4, "vocab_size": 60}),
}  # fmt: skip
PAIRS = ("t5", "marian")


def network(kind: str, task: str = "Model"):
    """A model in eval mode whose scores spread enough that no two heads agree by chance."""
    import transformers

    name, sizes = KINDS[kind]
    torch.manual_seed(sum(map(ord, kind)))
    config = getattr(transformers, f"{name}Config")(**sizes)
    made = getattr(transformers, f"{name}{task}")(config).eval()
    made.set_attn_implementation("eager")
    for parameter in made.parameters():
        if parameter.ndim > 1:
            parameter.data.mul_(8)
    return made


def entered(kind: str, batch: int = 1, length: int = 9) -> dict:
    """Seeded inputs for a model of this kind."""
    torch.manual_seed(1)
    if kind == "vit":
        return {"pixel_values": torch.randn(batch, 3, 16, 16)}
    given = {"input_ids": torch.randint(4, 60, (batch, length))}
    if kind in PAIRS:
        given["decoder_input_ids"] = torch.randint(4, 60, (batch, length - 3))
    return given


WORDS = ["the", "cat", "sat", "on", "mat", "river", "bank", "猫", "un", "##able", "a", "dog"]


def word_piece():
    """BERT's kind of tokenizer with a vocabulary of a few words."""
    from transformers import BertTokenizerFast

    vocab = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *WORDS]
    made = BertTokenizerFast(vocab={word: i for i, word in enumerate(vocab)})
    made.model_max_length = 64
    return made


def byte_level():
    """GPT-2's kind: all bytes, no merges; a space is part of the token after it."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    letters = sorted(pre_tokenizers.ByteLevel.alphabet())
    vocab = {"<|end|>": 0} | {letter: i + 1 for i, letter in enumerate(letters)}
    merges = [("t", "h"), ("th", "e"), ("Ġ", "the")]
    vocab |= {"".join(pair): len(vocab) + i for i, pair in enumerate(merges)}
    plain = Tokenizer(models.BPE(vocab, merges))
    plain.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    plain.decoder = decoders.ByteLevel()
    return PreTrainedTokenizerFast(tokenizer_object=plain, eos_token="<|end|>")


def save(folder, kind: str = "bert"):
    """A folder as save_pretrained leaves it: weights, configuration and a word-piece tokenizer."""
    tokenizer = word_piece()
    network(kind, "ForConditionalGeneration" if kind == "t5" else "Model").save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


def save_marian(folder):
    """A translation model as the hub holds them: two sentencepiece files, no tokenizer.json."""
    import sentencepiece

    made = io.BytesIO()
    said = iter(["the cat sat on the mat", "猫坐在垫子上"] * 9)
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=said, model_writer=made, vocab_size=40, hard_vocab_limit=False,
        minloglevel=2,
    )  # fmt: skip
    read = sentencepiece.SentencePieceProcessor(model_proto=made.getvalue())
    pieces = [read.id_to_piece(i) for i in range(len(read))]
    words = ["<pad>", "</s>", "<unk>", *(piece for piece in pieces if not piece.startswith("<"))]
    network("marian", "MTModel").save_pretrained(folder)
    for name in ("source.spm", "target.spm"):
        (folder / name).write_bytes(made.getvalue())
    (folder / "vocab.json").write_text(json.dumps({w: i for i, w in enumerate(words)}), "utf-8")
    facts = {"tokenizer_class": "MarianTokenizer", "source_lang": "en", "target_lang": "zh"}
    (folder / "tokenizer_config.json").write_text(json.dumps(facts), "utf-8")
    return folder
