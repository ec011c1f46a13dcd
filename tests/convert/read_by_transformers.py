"""A GGUF file as transformers reads it: the oracle for reading one."""

import torch
import transformers
from transformers.modeling_gguf_pytorch_utils import load_gguf_checkpoint

from pellucid.convert.gguf_file import GgufFile


def read_by_transformers(path, **corrections):
    """The same file as transformers reads it; what its reader leaves at a default is given as a correction."""
    said = {**load_gguf_checkpoint(str(path))["config"], **corrections}
    config = transformers.AutoConfig.for_model(**said)
    with torch.device("meta"):
        outline = transformers.AutoModelForCausalLM.from_config(config)
    tensors = load_gguf_checkpoint(str(path), return_tensors=True, model_to_load=outline)["tensors"]
    model = transformers.AutoModelForCausalLM.from_config(config, dtype=torch.float32)
    lacking = model.load_state_dict(tensors, strict=False)
    assert not lacking.unexpected_keys
    assert lacking.missing_keys == (["lm_head.weight"] if "output.weight" not in GgufFile(path).tensors else [])
    if lacking.missing_keys:
        model.tie_weights()
    return model.eval()
