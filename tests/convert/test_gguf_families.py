import gguf
import pytest

from pellucid.convert.gguf_families import GGUF_FAMILIES


@pytest.mark.parametrize("architecture", GGUF_FAMILIES)
def test_every_name_is_one_that_the_library_knows_for_the_architecture(architecture):
    number = next(one for one, name in gguf.MODEL_ARCH_NAMES.items() if name == architecture)
    known = {gguf.TENSOR_NAMES[kind].replace("{bid}", "{i}") for kind in gguf.MODEL_TENSORS[number]}
    names = {name.rpartition(".")[0] for row in GGUF_FAMILIES[architecture].weights.rows for name in row.theirs}
    assert names - known <= {"blk.{i}.attn_q_norm", "blk.{i}.attn_k_norm"}  # of Qwen3 and Gemma, in the shared table
    assert len(names & known) >= 9
