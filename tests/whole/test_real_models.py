"""Real weights from GGUF files: what transformers and llama.cpp make of the same file.

`transformers` computes on the same dequantised numbers, so its logits are ours but for rounding. llama.cpp also rounds
the activations to 8 bits where weights are quantised, so its logits are only near ours: the two distributions differ
by little (`DIVERGENCE`), and where we prefer a token clearly (`CLEAR`), it prefers the same.
"""

from pydoc_data.topics import topics

import gguf
import numpy as np
import pytest
import torch

import pellucid
from pellucid.convert.gguf_file import GgufFile
from tests import real_inputs
from tests.convert.read_by_transformers import read_by_transformers

pytestmark = pytest.mark.real

FILES = {"smollm2": real_inputs.smollm2, "gemma3": real_inputs.gemma3}
PROMPT = "The capital of France is Paris, and the largest city of Germany"
NEW_TOKENS = 200
ROUNDING = 1e-3  # of float32 in logits that reach 30
DIVERGENCE = 0.02  # nats a token, mean; 0.004 for SmolLM2's Q4_1 and 0.006 for Gemma's Q4_K_M when this was written
CLEAR = 1.0  # how far the best logit is above the next; 0.26 is the widest margin that llama.cpp turned round


@pytest.fixture(scope="module", params=FILES)
def path(request):
    return FILES[request.param]()


@pytest.fixture(scope="module")
def loaded(path):
    return pellucid.load(path)


def real_ids(loaded, count):
    text = "\n".join(topics[name] for name in ("class", "import", "lambda", "objects"))
    return torch.tensor([[*loaded.tokenizer.beginning_ids, *loaded.tokenizer.encode(text).tolist()][:count]])


def largest_difference(ours, theirs):
    """Of a whole vocabulary's logits, some positions at a time: all together are half a gigabyte."""
    return max((a - b).abs().max().item() for a, b in zip(ours[0].split(64), theirs[0].split(64), strict=True))


def test_every_tensor_is_what_the_gguf_library_reads(path):
    ours, library = GgufFile(path), gguf.GGUFReader(path)
    assert {tensor.name for tensor in library.tensors} == set(ours.tensors)
    for tensor in library.tensors:
        expected = gguf.quants.dequantize(tensor.data, tensor.tensor_type)
        assert np.array_equal(ours.read(tensor.name), expected.reshape(tensor.shape[::-1])), tensor.name


def test_logits_and_the_greedy_text_are_those_of_transformers(path, loaded):
    wide = {"query_pre_attn_scalar": 256} if loaded.model.config.norm_offset else {}  # not in the file
    theirs = read_by_transformers(path, **wide)
    prompt = torch.tensor([[*loaded.tokenizer.beginning_ids, *loaded.tokenizer.encode(PROMPT).tolist()]])
    written = loaded.complete([PROMPT], max_tokens=NEW_TOKENS, temperature=0)[0].token_ids
    whole = torch.cat([prompt, torch.tensor([written])], dim=1)
    with torch.no_grad():
        logits = theirs(whole).logits
        # Their best token after each prefix is the next of ours, so their greedy text is ours, by induction.
        assert logits[0, prompt.shape[1] - 1 : -1].argmax(-1).tolist() == written
        assert largest_difference(loaded.model(whole), logits) < ROUNDING
        ends_itself = logits[0, -1].argmax().item() in loaded.end_ids | {loaded.tokenizer.end_of_text_id}
        assert len(written) == NEW_TOKENS or ends_itself
        del logits
        long = real_ids(loaded, 640)  # past Gemma's window of 512
        assert largest_difference(loaded.model(long), theirs(long).logits) < ROUNDING


def in_llama_cpp(path, token_ids):
    """Logits of llama.cpp at every position."""
    library = pytest.importorskip("llama_cpp")
    model = library.Llama(
        str(path), n_ctx=512, n_batch=512, logits_all=True, n_threads=1, type_k=0, type_v=0, verbose=False
    )
    model.eval(token_ids)
    return torch.from_numpy(np.array(model.scores[: len(token_ids)])).float()


def test_llama_cpp_prefers_the_same_tokens(path, loaded):
    token_ids = real_ids(loaded, 300)
    theirs = in_llama_cpp(path, token_ids[0].tolist())
    with torch.no_grad():
        ours = loaded.model(token_ids)[0]
    ours, theirs = ours.log_softmax(-1), theirs.log_softmax(-1)
    assert (ours.exp() * (ours - theirs)).sum(-1).mean() < DIVERGENCE
    best, next_best = ours.topk(2).values.unbind(-1)
    clear = best - next_best > CLEAR
    assert clear.sum() > 100
    assert torch.equal(ours.argmax(-1)[clear], theirs.argmax(-1)[clear])


def test_in_float32_llama_cpp_s_logits_and_greedy_text_are_ours(path, loaded, tmp_path):
    whole = written_in_float32(path, tmp_path / "float32.gguf")
    prompt = [*loaded.tokenizer.beginning_ids, *loaded.tokenizer.encode(PROMPT).tolist()]
    written = loaded.complete([PROMPT], max_tokens=100, temperature=0)[0].token_ids
    theirs = in_llama_cpp(whole, [*prompt, *written])
    assert theirs[len(prompt) - 1 : -1].argmax(-1).tolist() == written
    with torch.no_grad():
        assert (loaded.model(torch.tensor([[*prompt, *written]]))[0] - theirs).abs().max() < 0.05


def written_in_float32(path, target):
    """The same file with every tensor in float32, by the gguf library."""
    library = gguf.GGUFReader(path)
    writer = gguf.GGUFWriter(target, str(library.fields["general.architecture"].contents()))
    for name, field in library.fields.items():
        if not name.startswith("GGUF.") and name not in ("general.architecture", "general.file_type"):
            inner = field.types[-1] if field.types[0] == gguf.GGUFValueType.ARRAY else None
            writer.add_key_value(name, field.contents(), field.types[0], sub_type=inner)
    ours = GgufFile(path)
    for name in ours.tensors:
        writer.add_tensor(name, ours.read(name))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return target
