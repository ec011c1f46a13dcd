"""The families of models that a Hugging Face folder may hold: for each a preset and tables, and no code of its own.

    weights    whose tensor is which of ours (names.py reads it both ways)
    fields     which field of its config.json is which of ours, and what it means when it is not there
    windows    how its config.json says which layers see through a sliding window

A field of config.json that is in no table here is refused by name: it may change the mathematics.

In: nothing.  Out: `FAMILIES`, by model_type.  Used by: huggingface_config, huggingface.  Read next:
huggingface_config.py.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from pellucid import presets
from pellucid.convert.names import GPT2_SIZES, LLAMA_SIZES, Family, Row
from pellucid.model_config import ModelConfig

Windows = Literal["none", "everywhere", "from a layer on", "all but one in some"]


@dataclass(frozen=True)
class Field:
    """A field of a config.json, and what it says in ours."""

    theirs: str
    ours: tuple[str, ...] = ()
    """Fields of `ModelConfig` that take its value as it is."""
    absent: Any = None
    """What its absence means there; None: what our preset says."""
    words: Mapping[Any, Mapping[str, Any]] | None = None
    """For a field of a few known values, what each says in ours."""
    read: Callable[[float], Mapping[str, Any]] | None = None
    """For a number, what it says in ours."""
    write: Callable[[ModelConfig], float] | None = None
    """The same the other way: the number that says what a model of ours is."""


@dataclass(frozen=True, kw_only=True)
class HuggingFaceFamily:
    """What a family's folder means."""

    model_type: str
    architecture: str
    """What its config.json calls the class that makes it."""
    preset: Callable[..., ModelConfig]
    weights: Family
    prefix: str
    """What the names of a file without a head leave out."""
    sizes: Mapping[str, str]
    """Fields that must be there, ours to theirs."""
    fields: tuple[Field, ...]
    windows: Windows = "none"
    thetas_by_layer: bool = False
    """Whether local layers have a theta of their own, the preset's if none is told."""

    @property
    def name(self) -> str:
        """What it is called in messages: Qwen3."""
        return self.architecture.removesuffix("ForCausalLM").removesuffix("LMHeadModel")


GATED = {
    "silu": {"feed_forward": "swiglu"},
    "swish": {"feed_forward": "swiglu"},
    "gelu": {"feed_forward": "geglu", "gelu": "exact"},
    "gelu_new": {"feed_forward": "geglu", "gelu": "tanh"},
    "gelu_pytorch_tanh": {"feed_forward": "geglu", "gelu": "tanh"},
}
PLAIN = {
    "silu": {"feed_forward": "silu"},
    "swish": {"feed_forward": "silu"},
    "relu2": {"feed_forward": "relu2"},
    "gelu": {"feed_forward": "gelu", "gelu": "exact"},
    "gelu_new": {"feed_forward": "gelu", "gelu": "tanh"},
    "gelu_fast": {"feed_forward": "gelu", "gelu": "tanh"},
    "gelu_pytorch_tanh": {"feed_forward": "gelu", "gelu": "tanh"},
}
"""Activations by their names there: in a gated feed-forward part, and in a plain one."""

NEUTRAL = {
    "partial_rotary_factor": 1.0,
    "rope_interleaved": False,
    "add_cross_attention": False,
    "scale_attn_by_inverse_layer_idx": False,
    "use_bidirectional_attention": False,
    "is_encoder_decoder": False,
    "is_decoder": False,
}
"""Fields that may have this value, which changes nothing, and no other."""

# fmt: off
WITHOUT_MEANING = frozenset({
    "model_type", "architectures", "torch_dtype", "dtype", "transformers_version", "_name_or_path", "name_or_path",
    "use_cache", "initializer_range", "pretraining_tp", "bos_token_id", "eos_token_id", "pad_token_id",
    "task_specific_params", "attention_dropout", "resid_pdrop", "embd_pdrop", "attn_pdrop",
    "reorder_and_upcast_attn", "n_ctx", "cache_implementation", "summary_type", "summary_use_proj",
    "summary_activation", "summary_proj_to_labels", "summary_first_dropout", "is_llama_config",
    "transformers.js_config", "gradient_checkpointing", "_attn_implementation_autoset", "id2label", "label2id",
    "output_attentions", "chunk_size_feed_forward", "problem_type", "num_labels", "output_hidden_states",
    "return_dict", "unsloth_version", "unsloth_fixed",
})
# fmt: on
"""Fields that change no logit: of training, of files, of other heads than the language model's."""

_ENDS = (
    Row("token_embedding.weight", "model.embed_tokens.weight"),
    Row("final_norm.weight", "model.norm.weight"),
    Row("lm_head.weight", "lm_head.weight"),
)


def _query_key_value(kind: str) -> Row:
    names = (f"model.layers.{{i}}.self_attn.{part}_proj.{kind}" for part in "qkv")
    return Row(f"blocks.{{i}}.attention.query_key_value.{kind}", *names)


def _layer(ours: str, theirs: str) -> Row:
    return Row(f"blocks.{{i}}.{ours}", f"model.layers.{{i}}.{theirs}")


_PARTS = (
    _query_key_value("weight"),
    _query_key_value("bias"),
    *(
        _layer(f"{ours}.{kind}", f"{theirs}.{kind}")
        for ours, theirs in (
            ("attention.output", "self_attn.o_proj"),
            ("feed_forward.gate", "mlp.gate_proj"),
            ("feed_forward.up", "mlp.up_proj"),
            ("feed_forward.down", "mlp.down_proj"),
        )
        for kind in ("weight", "bias")
    ),
    _layer("attention.query_norm.weight", "self_attn.q_norm.weight"),
    _layer("attention.key_norm.weight", "self_attn.k_norm.weight"),
)
_PRE = (
    _layer("attention_norm.weight", "input_layernorm.weight"),
    _layer("feed_forward_norm.weight", "post_attention_layernorm.weight"),
)
_OUTPUT = (
    _layer("attention_output_norm.weight", "post_attention_layernorm.weight"),
    _layer("feed_forward_output_norm.weight", "post_feedforward_layernorm.weight"),
)
_SANDWICH = (
    _layer("attention_norm.weight", "input_layernorm.weight"),
    _layer("feed_forward_norm.weight", "pre_feedforward_layernorm.weight"),
    *_OUTPUT,
)

LLAMA_NAMES = Family(name="Llama", pair_order="halves", rows=(*_ENDS, *_PARTS, *_PRE))
OLMO2_NAMES = Family(name="OLMo-2", pair_order="halves", rows=(*_ENDS, *_PARTS, *_OUTPUT))
GEMMA3_NAMES = Family(name="Gemma 3", pair_order="halves", rows=(*_ENDS, *_PARTS, *_SANDWICH))


def _gpt2_layer(ours: str, theirs: str, *, transposed: bool = False) -> tuple[Row, Row]:
    row = Row(f"blocks.{{i}}.{ours}.weight", f"transformer.h.{{i}}.{theirs}.weight", transposed=transposed)
    return row, Row(f"blocks.{{i}}.{ours}.bias", f"transformer.h.{{i}}.{theirs}.bias")


GPT2_NAMES = Family(
    name="GPT-2",
    pair_order="halves",
    rows=(
        Row("token_embedding.weight", "transformer.wte.weight"),
        Row("position_embedding.weight", "transformer.wpe.weight"),
        *_gpt2_layer("attention_norm", "ln_1"),
        *_gpt2_layer("attention.query_key_value", "attn.c_attn", transposed=True),
        *_gpt2_layer("attention.output", "attn.c_proj", transposed=True),
        *_gpt2_layer("feed_forward_norm", "ln_2"),
        *_gpt2_layer("feed_forward.up", "mlp.c_fc", transposed=True),
        *_gpt2_layer("feed_forward.down", "mlp.c_proj", transposed=True),
        Row("final_norm.weight", "transformer.ln_f.weight"),
        Row("final_norm.bias", "transformer.ln_f.bias"),
        Row("lm_head.weight", "lm_head.weight"),
    ),
)

_ALIKE = (
    Field("num_key_value_heads", ("num_kv_heads",)),
    Field("head_dim", ("d_head",)),
    Field("rms_norm_eps", ("norm_epsilon",), absent=1e-6),
    Field("hidden_act", absent="silu", words=GATED),
    Field("tie_word_embeddings", ("tie_embeddings",), absent=False),
)
_ATTENTION_BIAS = Field("attention_bias", ("qkv_bias", "attention_output_bias"), absent=False)


def _llama_like(model_type: str, architecture: str, preset: Callable[..., ModelConfig], *more: Field, **choices: Any):
    """A family whose config.json and weights are spelled as Llama's; a field of `more` stands before one of its own."""
    told = {field.theirs for field in more}
    return HuggingFaceFamily(
        model_type=model_type,
        architecture=architecture,
        preset=preset,
        prefix="model.",
        sizes=LLAMA_SIZES,
        fields=(*more, *(field for field in _ALIKE if field.theirs not in told)),
        **{"weights": LLAMA_NAMES, **choices},
    )


FAMILIES: dict[str, HuggingFaceFamily] = {
    family.model_type: family
    for family in (
        _llama_like(
            "llama",
            "LlamaForCausalLM",
            presets.llama,
            _ATTENTION_BIAS,
            Field("mlp_bias", ("feed_forward_bias",), absent=False),
        ),
        _llama_like(
            "mistral",
            "MistralForCausalLM",
            presets.mistral,
            Field("num_key_value_heads", ("num_kv_heads",), absent=8),
            windows="everywhere",
        ),
        _llama_like("qwen2", "Qwen2ForCausalLM", presets.qwen2, windows="from a layer on"),
        _llama_like(
            "qwen3",
            "Qwen3ForCausalLM",
            presets.default,
            _ATTENTION_BIAS,
            Field("head_dim", ("d_head",), absent=128),
            windows="from a layer on",
        ),
        _llama_like(
            "olmo2",
            "Olmo2ForCausalLM",
            presets.olmo2,
            _ATTENTION_BIAS,
            Field("rms_norm_eps", ("norm_epsilon",), absent=1e-5),
            weights=OLMO2_NAMES,
        ),
        _llama_like(
            "gemma3_text",
            "Gemma3ForCausalLM",
            presets.gemma3,
            _ATTENTION_BIAS,
            Field("num_key_value_heads", ("num_kv_heads",), absent=4),
            Field("head_dim", ("d_head",), absent=256),
            Field("hidden_activation", absent="gelu_pytorch_tanh", words=GATED),
            Field("hidden_act", words={"gelu_pytorch_tanh": {}}),  # an older name, which nothing there reads
            Field("tie_word_embeddings", ("tie_embeddings",), absent=True),
            Field(
                "query_pre_attn_scalar",
                absent=256,
                read=lambda number: {"attention_scale": number**-0.5},
                write=lambda config: (config.attention_scale or config.d_head**-0.5) ** -2,
            ),
            Field("final_logit_softcapping", ("logit_soft_cap",)),
            weights=GEMMA3_NAMES,
            windows="all but one in some",
            thetas_by_layer=True,
        ),
        HuggingFaceFamily(
            model_type="gpt2",
            architecture="GPT2LMHeadModel",
            preset=presets.gpt2,
            weights=GPT2_NAMES,
            prefix="transformer.",
            sizes=GPT2_SIZES,
            fields=(
                Field("n_inner", ("d_ff",)),
                Field("layer_norm_epsilon", ("norm_epsilon",), absent=1e-5),
                Field("activation_function", absent="gelu_new", words=PLAIN),
                Field("scale_attn_weights", absent=True, words={True: {}, False: {"attention_scale": 1.0}}),
                Field("tie_word_embeddings", ("tie_embeddings",), absent=True),
            ),
        ),
    )
}
"""By model_type, the word in config.json."""
