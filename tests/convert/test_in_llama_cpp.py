import numpy as np
import pytest
import torch

from pellucid.convert.gguf_writing import write_gguf
from pellucid.convert.in_llama_cpp import answer
from tests.convert.outgoing_models import SHAPES, byte_pairs, made, outgoing


@pytest.mark.real
def test_it_tells_what_llama_cpp_makes_of_a_file(tmp_path):
    pytest.importorskip("llama_cpp")
    model = made(SHAPES["qwen3"])
    write_gguf(tmp_path / "x.gguf", outgoing(model), "float32")
    request = {"rows": [[1, 2, 3], [4, 5]], "texts": ["to be", ""], "letter": "a"}
    told, logits = answer(str(tmp_path / "x.gguf"), request)
    tokenizer = byte_pairs()
    assert told["ids"] == [tokenizer.encode(text).tolist() for text in request["texts"]]
    assert told["begun"] == tokenizer.encode("a").tolist()
    assert told["ends"] == [0]
    with torch.no_grad():
        ours = torch.cat([model(torch.tensor([row]))[0] for row in request["rows"]]).numpy()
    assert np.abs(logits - ours).max() < 1e-3
