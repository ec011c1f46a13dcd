import json

import numpy as np
import torch

from pellucid.convert.huggingface_writing import write_hugging_face
from pellucid.convert.in_transformers import answer, main
from tests.convert.outgoing_models import SHAPES, byte_pairs, made, outgoing


def test_it_tells_what_transformers_makes_of_a_folder(tmp_path):
    folder, model = tmp_path / "hf", made(SHAPES["qwen3"])
    folder.mkdir()
    write_hugging_face(folder, outgoing(model, end_ids=frozenset({4})), "float32")
    request = {"rows": [[1, 2, 3], [4, 5]], "texts": ["to be", ""], "letter": "a"}
    told, logits = answer(str(folder), request)
    tokenizer = byte_pairs()
    assert told["ids"] == [tokenizer.encode(text).tolist() for text in request["texts"]]
    assert told["begun"] == tokenizer.encode("a").tolist()
    assert told["ends"] == [0, 4]
    assert told["unfit"] == []
    with torch.no_grad():
        ours = torch.cat([model(torch.tensor([row]))[0] for row in request["rows"]]).numpy()
    assert np.abs(logits - ours).max() < 1e-4


def test_weights_without_a_place_are_told(tmp_path):
    folder, model = tmp_path / "hf", made(SHAPES["llama"])
    folder.mkdir()
    write_hugging_face(folder, outgoing(model), "float32")
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**config, "num_hidden_layers": 4}))
    told, _ = answer(str(folder), {"rows": [[1]], "texts": [], "letter": "a"})
    assert any("layers.3" in name for name in told["unfit"])


def test_as_a_program_it_writes_two_files(tmp_path):
    folder = tmp_path / "hf"
    folder.mkdir()
    write_hugging_face(folder, outgoing(made(SHAPES["qwen3"])), "bfloat16")
    (tmp_path / "q.json").write_text(json.dumps({"rows": [[1, 2]], "texts": ["a"], "letter": "a"}))
    main([str(folder), str(tmp_path / "q.json"), str(tmp_path / "a")])
    assert np.load(tmp_path / "a.npy").shape == (2, 280)
    assert json.loads((tmp_path / "a.json").read_text())["ids"] == [byte_pairs().encode("a").tolist()]
